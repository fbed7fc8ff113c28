// A thin layer over PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/quantize/name_pattern.h"

#include <pcre2.h>

#include <array>
#include <new>

#include "lockstep/error.h"
#include "runtime/printable.h"

namespace lockstep::quantize {

namespace {

[[noreturn]] void fail(const std::string& pattern, const std::string& what) {
  throw Error(ErrorCode::usage, "the pattern \"" + printable(pattern) + "\": " + what);
}

std::string reason(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct NamePattern::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }

  pcre2_code* code;
};

NamePattern::NamePattern(const std::string& pattern) : pattern_(pattern) {
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  if (compiled == nullptr) fail(pattern, reason(code) + " at character " + std::to_string(at));
  code_ = std::make_shared<const Code>(compiled);
}

bool NamePattern::found_in(std::string_view name) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr), pcre2_match_data_free);
  if (!data) throw std::bad_alloc();
  const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(),
                                0, 0, data.get(), nullptr);
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) fail(pattern_, reason(found));
  return found >= 0;
}

}  // namespace lockstep::quantize
