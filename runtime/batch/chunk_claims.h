// Sharing a job as it goes: whoever is free takes the next chunk of lines. A rank on a slower or
// busier machine takes fewer, and none has to know how long the answers of others will be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/batch/line_claims.h"

namespace lockstep::batch {

// Chunk after chunk of a job, the same for everybody who counts them through: sixteen for each rank
// of what is left, at least one line and at most 64. Chunks get small towards the end, so that no
// rank has much to do when the others are done.
class ChunkSchedule {
 public:
  ChunkSchedule(std::size_t lines, unsigned ranks) : lines_(lines), ranks_(ranks) {}

  struct Chunk {
    std::size_t begin = 0, end = 0;  // 0-based numbers of lines
  };
  // Chunk `number`; numbers must increase from call to call. Behind the last chunk: all that
  // follows the lines.
  Chunk chunk(std::uint64_t number);

 private:
  std::size_t size_at(std::size_t line) const;

  std::size_t lines_;
  unsigned ranks_;
  std::uint64_t number_ = 0;  // of the chunk that begins at begin_
  std::size_t begin_ = 0;
};

// Every line is answered by exactly one of the ranks, as long as all ask about the same lines in
// the same order, and no number is given twice.
class ChunkClaims final : public LineClaims {
 public:
  // `next` gives the number of a chunk that nobody had, increasing from call to call. The first
  // chunk is the one with the number of the rank, so that the start needs nobody's answer; `next`
  // must begin behind those, at `ranks`. `serve` is called at every step.
  ChunkClaims(std::size_t lines, unsigned rank, unsigned ranks, std::function<std::uint64_t()> next,
              std::function<void()> serve);

  bool mine(std::size_t index) override;
  bool is_fixed() const override { return false; }
  void progress() override { serve_(); }

  std::size_t taken() const override { return taken_; }

 private:
  std::size_t lines_;
  unsigned rank_;
  ChunkSchedule schedule_;
  std::function<std::uint64_t()> next_;
  std::function<void()> serve_;
  ChunkSchedule::Chunk chunk_;
  bool begun_ = false;
  std::size_t taken_ = 0;
};

}  // namespace lockstep::batch
