// Bringing weights from the file into place: every worker reads its own row slices with large
// reads, first-touches its own memory and packs its own rows. The packed copy is the only one in
// memory; the slices are those of ops::split, so a worker later computes exactly the rows that it
// loaded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "lockstep/lockstep.h"
#include "ops/matrix.h"
#include "runtime/executor.h"
#include "runtime/gguf.h"
#include "runtime/page_policy.h"
#include "topology/node_memory.h"

namespace lockstep {

// The loaded bytes. Addresses stay valid while this lives.
struct Weights {
  std::deque<ops::ShardedMatrix> matrices;
  std::deque<std::vector<float>> vectors;
  std::deque<ops::RowTable> tables;
  std::deque<std::vector<std::byte>> sides;
  std::vector<topology::NodeBuffer> buffers;
  // Where packed matrices lie, and the node (OS index) whose workers read them.
  struct Part {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    unsigned os_node = 0;
  };
  std::vector<Part> parts;
  std::uint64_t bytes = 0;  // packed matrices and tables
  std::uint64_t read_bytes = 0;
  double read_seconds = 0;
};

// Ask for every weight by name and shape, map their memory, then load() them all at once.
class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, Executor& executor, const PagePolicy& pages, quant::Isa isa,
               Weights& into);

  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // A matrix [rows, columns] for y = W x, filled by load(). Slices begin at multiples of
  // `align_rows` (rounded up to whole panels). Throws Error(bad_model) with expected and actual
  // shape, or naming a format that cannot be computed with.
  const ops::ShardedMatrix& matrix(const std::string& name, std::size_t rows, std::size_t columns,
                                   std::size_t align_rows = 1);
  // A vector [n], expanded to f32 at once; its format must be one without side data.
  const std::vector<float>& vector(const std::string& name, std::size_t n);
  // A table of rows in the file's blocks, filled by load().
  const ops::RowTable& table(const std::string& name, std::size_t rows, std::size_t columns);

  // Gives everything that was asked for its place, in memory that is mapped and not yet touched.
  // Throws Error(bad_model) for a tensor in the file that nobody asked for (the architecture would
  // be misread), Error(no_resource).
  void map();
  // Reads it, in parallel. Throws Error(bad_model) for a block scale that is not finite.
  void load(const ModelOptions& options);

 private:
  struct MatrixRequest {
    const GgufTensor* tensor;
    ops::ShardedMatrix* matrix;
  };
  struct TableRequest {
    const GgufTensor* tensor;
    std::byte* data;
  };
  class Progress;

  const GgufTensor& require(const std::string& name, std::size_t rows, std::size_t columns);
  // The side data of a tensor, null if its format has none; read and checked at once.
  const std::byte* side(const GgufTensor& tensor);
  void refuse_unused() const;
  void allocate();
  std::uint64_t bytes_to_read() const;
  void load_slices(const ops::Lane& lane, Progress& progress) const;
  void load_shard(const MatrixRequest& request, const ops::Slice& rows, std::byte* panels,
                  std::vector<std::byte>& staging, const ops::Lane& lane, Progress& progress) const;

  const GgufFile& file_;
  Executor& executor_;
  const PagePolicy& pages_;
  quant::Isa isa_;
  Weights& weights_;
  std::unordered_set<std::string> used_;
  std::vector<MatrixRequest> matrices_;
  std::vector<TableRequest> tables_;
};

}  // namespace lockstep
