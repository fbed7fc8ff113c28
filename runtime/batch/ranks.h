// The processes that share a job and can talk to each other. MPI is behind this interface
// (runtime/mpi), and so are threads that stand for ranks in tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::batch {

class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  // Without finish() it does as break_off().
  virtual ~Ranks() = default;

  virtual unsigned rank() const noexcept = 0;
  virtual unsigned ranks() const noexcept = 0;

  // What every rank says, by rank. All ranks must call it, and each waits for all.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
  // 0, 1, 2, ...: each number goes to one caller only. Needs nobody but rank 0, which answers while
  // it is in a call of this interface: once per step, in progress().
  virtual std::uint64_t count_up() = 0;
  virtual void progress() = 0;
  // The last call, of all ranks.
  virtual void finish() = 0;
  // The last call of a rank that cannot meet the others any more: ends them, too, where they would
  // wait for ever. May not return.
  virtual void break_off(int code) noexcept = 0;
};

// A process by itself.
class OneRank final : public Ranks {
 public:
  unsigned rank() const noexcept override { return 0; }
  unsigned ranks() const noexcept override { return 1; }
  std::vector<std::string> gather(std::string_view text) override { return {std::string(text)}; }
  std::uint64_t count_up() override { return counter_++; }
  void progress() override {}
  void finish() override {}
  void break_off(int /*code*/) noexcept override {}

 private:
  std::uint64_t counter_ = 0;
};

}  // namespace lockstep::batch
