// The checked reading of a GGUF header, apart from what is done with it afterwards.
//
//   magic "GGUF" | version u32 | tensors u64 | entries u64
//   entries x  { key string | type u32 | value }          value: scalar, string, or array
//   tensors x  { name string | rank u32 | dims u64[rank] | format u32 | offset u64 }
//   padding to the alignment | data; tensor offsets count from here
//
// string: length u64 and bytes. array: element type u32, count u64 and the elements.
//
// The same code walks the header twice. The first walk checks everything and stores nothing but two
// numbers per name, so a damaged or hostile file costs little memory however large it claims, or
// even is, to be. Only a header that passed is walked again and kept. Every check runs in both
// walks, so a file that changes in between is no way around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/file_window.h"
#include "runtime/gguf.h"
#include "runtime/gguf_layout.h"

namespace lockstep {

class GgufParser {
 public:
  // `file` has its path, size and descriptor; the rest is filled in if `keep`.
  GgufParser(GgufFile& file, bool keep);
  // Throws Error(bad_model) for everything that is wrong, Error(io) if reading fails.
  void run();

 private:
  // Where the name of an entry or tensor lies in the file, and its hash: enough to find duplicates.
  struct NameMark {
    std::uint64_t hash;
    std::uint64_t position;
  };
  struct Region {
    std::uint64_t name_position;
    std::uint64_t offset;  // from the start of the data
    std::uint64_t bytes;
  };

  void prologue();
  void entries();
  void entry(std::uint64_t index);
  void special_entry(const std::string& key, const MetadataValue& value, std::uint64_t at);
  void tensors();
  void tensor(std::uint64_t index);
  void sizes(GgufTensor& tensor, std::uint64_t at);
  void regions();

  MetadataValue value(MetadataType type);
  MetadataValue scalar(MetadataType type);
  MetadataValue array();
  template <typename Wide, typename Narrow>
  std::vector<Wide> numbers(std::uint64_t count);
  std::vector<std::string> strings(std::uint64_t count);
  std::vector<std::uint64_t> booleans(std::uint64_t count);
  MetadataType type(const char* what);
  bool boolean();
  std::string text();  // a string value; empty unless kept
  std::string name();  // a key or tensor name, always read
  std::string name_at(std::uint64_t position);
  void note_name(std::vector<NameMark>& marks, std::string_view name, std::uint64_t position) const;
  void no_duplicates(std::vector<NameMark>& marks, const char* what);
  void charge(std::uint64_t count, std::uint64_t bytes_each);

  template <typename T>
  T take(const char* what);
  [[noreturn]] void fail(const std::string& what, std::uint64_t at) const;

  GgufFile& file_;
  FileWindow in_;
  bool keep_;
  std::string where_;  // what is being read, for messages: "metadata key 'x'"
  std::uint64_t alignment_ = 32;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t entry_count_ = 0;
  std::uint64_t kept_bytes_ = 0;  // what the header read so far takes in memory
  std::vector<NameMark> key_marks_;
  std::vector<NameMark> tensor_marks_;
  std::vector<Region> regions_;
};

}  // namespace lockstep
