// Threads that stand for the ranks of a job: the same meetings as over MPI, in one process.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/batch/ranks.h"

namespace lockstep::test {

class ThreadRanks {
 public:
  explicit ThreadRanks(unsigned ranks)
      : texts_(ranks), meeting_(static_cast<std::ptrdiff_t>(ranks)) {}

  // Runs `work` once for every rank and returns when all have ended. It must not throw, and must
  // leave no assertion to Catch, which knows one thread only.
  void run(const std::function<void(batch::Ranks&)>& work) {
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < texts_.size(); ++rank) {
      threads.emplace_back([this, rank, &work] {
        One one(*this, rank);
        work(one);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  class One final : public batch::Ranks {
   public:
    One(ThreadRanks& all, unsigned rank) : all_(all), rank_(rank) {}
    unsigned rank() const noexcept override { return rank_; }
    unsigned ranks() const noexcept override { return static_cast<unsigned>(all_.texts_.size()); }
    std::vector<std::string> gather(std::string_view text) override {
      all_.texts_[rank_] = text;
      all_.meeting_.arrive_and_wait();
      std::vector<std::string> told = all_.texts_;
      all_.meeting_.arrive_and_wait();
      return told;
    }
    std::uint64_t count_up() override { return all_.counter_++; }
    void progress() override {}
    void finish() override { gather(""); }
    void break_off(int /*code*/) noexcept override {}

   private:
    ThreadRanks& all_;
    unsigned rank_;
  };

  std::vector<std::string> texts_;
  std::barrier<> meeting_;
  std::atomic<std::uint64_t> counter_{0};
};

}  // namespace lockstep::test
