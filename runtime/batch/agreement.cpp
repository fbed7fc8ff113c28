// Everything goes through Ranks::gather as text: once per job, and readable where it goes wrong.
#include "runtime/batch/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::batch {
namespace {

using nlohmann::json;

std::vector<json> gather_json(Ranks& ranks, const json& own) {
  std::vector<json> all;
  for (const std::string& text :
       ranks.gather(own.dump(-1, ' ', false, json::error_handler_t::replace))) {
    all.push_back(json::parse(text));
  }
  return all;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : "not given";
}

// What two ranks with one output do not have in common, or "".
std::string difference(const json& a, const json& b) {
  if (a.at("input") != b.at("input")) return "different inputs";
  if (a.contains("bytes") && b.contains("bytes") && a.at("bytes") != b.at("bytes")) {
    return "inputs of different sizes";
  }
  for (const auto& [name, value] : a.at("options").items()) {
    const json other = b.at("options").value(name, json());
    if (other != value)
      return fmt::format("different options ({}: {} and {})", name, text_of(value), text_of(other));
  }
  return "";
}

[[noreturn]] void refuse(const std::string& output, std::size_t a, std::size_t b,
                         const std::string& what) {
  throw Error(ErrorCode::usage,
              fmt::format("{}: ranks {} and {} have this output and {}; give all ranks the same "
                          "job, or each an output of its own",
                          output, a, b, what));
}

// How serious an exit code is.
int seriousness(int code) noexcept {
  if (code == 0 || code == 1) return code;
  return code == static_cast<int>(ErrorCode::interrupted) ? 2 : 3;
}

}  // namespace

bool have_one_job(Ranks& ranks, const JobIdentity& own) {
  json identity = {{"output", own.output}, {"input", own.input}, {"options", own.options}};
  if (own.input_bytes) identity["bytes"] = *own.input_bytes;
  const std::vector<json> all = gather_json(ranks, identity);
  std::map<std::string, std::size_t> first_with;  // output -> rank
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto [first, is_new] = first_with.try_emplace(all[rank].at("output"), rank);
    if (is_new) continue;
    const std::string what = difference(all[first->second], all[rank]);
    if (!what.empty()) refuse(first->first, first->second, rank, what);
  }
  if (first_with.size() == 1) return true;
  if (first_with.size() == all.size()) return false;
  throw Error(ErrorCode::usage,
              fmt::format("{} ranks write {} outputs; give all ranks the same job, or each an "
                          "output of its own",
                          all.size(), first_with.size()));
}

std::optional<Failure> first_failure(Ranks& ranks, int code) {
  const std::vector<std::string> codes = ranks.gather(std::to_string(code));
  for (unsigned rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] != "0") return Failure{rank, std::stoi(codes[rank])};
  }
  return std::nullopt;
}

std::optional<unsigned> first_other(Ranks& ranks, std::string_view text) {
  const std::vector<std::string> texts = ranks.gather(text);
  for (unsigned rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] != texts[0]) return rank;
  }
  return std::nullopt;
}

int worse_code(int a, int b) noexcept {
  if (seriousness(a) != seriousness(b)) return seriousness(a) > seriousness(b) ? a : b;
  return std::max(a, b);
}

JobEnd end_of_all(Ranks& ranks, const JobEnd& own) {
  JobEnd sum;
  for (const json& one :
       gather_json(ranks, {{"code", own.code}, {"rows", own.rows}, {"errors", own.errors}})) {
    sum.code = worse_code(sum.code, one.at("code"));
    sum.rows += one.at("rows").get<std::size_t>();
    sum.errors += one.at("errors").get<std::size_t>();
  }
  return sum;
}

}  // namespace lockstep::batch
