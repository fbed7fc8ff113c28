// See chunk_claims.h. Only numbers of chunks go from rank to rank; where a chunk lies follows from
// its number, so one counter is all that has to be shared.
#include "runtime/batch/chunk_claims.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::batch {
namespace {

constexpr std::size_t kChunksPerRank = 16;
constexpr std::size_t kMaxChunk = 64;

}  // namespace

std::size_t ChunkSchedule::size_at(std::size_t line) const {
  const std::size_t left = lines_ - line;
  return std::clamp<std::size_t>(left / (kChunksPerRank * ranks_), 1, kMaxChunk);
}

ChunkSchedule::Chunk ChunkSchedule::chunk(std::uint64_t number) {
  for (; number_ < number && begin_ < lines_; ++number_) begin_ += size_at(begin_);
  if (begin_ >= lines_) return {lines_, std::numeric_limits<std::size_t>::max()};
  return {begin_, begin_ + size_at(begin_)};
}

ChunkClaims::ChunkClaims(std::size_t lines, unsigned rank, unsigned ranks,
                         std::function<std::uint64_t()> next, std::function<void()> serve)
    : lines_(lines),
      rank_(rank),
      schedule_(lines, ranks),
      next_(std::move(next)),
      serve_(std::move(serve)) {}

bool ChunkClaims::mine(std::size_t index) {
  while (index >= chunk_.end) {
    chunk_ = schedule_.chunk(begun_ ? next_() : rank_);
    begun_ = true;
    taken_ = std::min(chunk_.end, lines_);
  }
  return index >= chunk_.begin;
}

}  // namespace lockstep::batch
