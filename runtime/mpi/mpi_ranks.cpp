// See mpi_ranks.h. While a job runs there is one call that other ranks have a part in: counting up,
// in a window of rank 0, which rank 0 need not be waiting for. So a rank that dies, or waits for
// its disk, stops nobody. Whoever waits for all others sleeps between looks: MPI's own waiting
// would keep a core busy for as long as the slowest rank has work.
#include "runtime/mpi/mpi_ranks.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "lockstep/error.h"
#include "topology/binding.h"

namespace lockstep::mpi {
namespace {

void wait_for(MPI_Request request) {
  auto pause = std::chrono::microseconds(20);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

class MpiRanks final : public batch::Ranks {
 public:
  MpiRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    // Rank 0's is used, the others' are empty.
    const MPI_Aint bytes = rank_ == 0 ? sizeof(std::uint64_t) : 0;
    MPI_Win_allocate(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &counter_,
                     &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    if (rank_ == 0) {
      const std::uint64_t zero = 0;
      std::uint64_t before = 0;
      MPI_Fetch_and_op(&zero, &before, MPI_UINT64_T, 0, 0, MPI_REPLACE, window_);
      MPI_Win_flush(0, window_);
    }
    MPI_Request all_see_it = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all_see_it);
    wait_for(all_see_it);
  }

  ~MpiRanks() override {
    if (!finished_) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ErrorCode::internal));
  }

  unsigned rank() const noexcept override { return static_cast<unsigned>(rank_); }
  unsigned ranks() const noexcept override { return static_cast<unsigned>(ranks_); }

  std::vector<std::string> gather(std::string_view text) override {
    const auto count = static_cast<std::size_t>(ranks_);
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(count);
    std::vector<int> offsets(count);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, &request);
    wait_for(request);
    for (std::size_t i = 1; i < count; ++i) offsets[i] = offsets[i - 1] + lengths[i - 1];
    std::string joined(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
    MPI_Iallgatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(), offsets.data(),
                    MPI_CHAR, MPI_COMM_WORLD, &request);
    wait_for(request);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
      texts.push_back(joined.substr(static_cast<std::size_t>(offsets[i]),
                                    static_cast<std::size_t>(lengths[i])));
    }
    return texts;
  }

  std::uint64_t count_up() override {
    const std::uint64_t one = 1;
    std::uint64_t before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return before;
  }

  // Any call of MPI answers what others ask this rank's window; this one does nothing else.
  void progress() override {
    int found = 0;
    if (rank_ == 0) {
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  }

  void finish() override {
    // The barrier of MPI_Win_free would spin; this one sleeps.
    gather("");
    finished_ = true;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
    MPI_Finalize();
  }

  void break_off(int code) noexcept override {
    finished_ = true;
    MPI_Abort(MPI_COMM_WORLD, code);
  }

 private:
  int rank_ = 0, ranks_ = 1;
  bool finished_ = false;
  MPI_Win window_ = MPI_WIN_NULL;
  std::uint64_t* counter_ = nullptr;
};

}  // namespace

std::string_view library() noexcept {
#if defined(OMPI_MAJOR_VERSION)
#define LOCKSTEP_TEXT_OF(number) #number
#define LOCKSTEP_TEXT(number) LOCKSTEP_TEXT_OF(number)
  return "Open MPI " LOCKSTEP_TEXT(OMPI_MAJOR_VERSION) "." LOCKSTEP_TEXT(
      OMPI_MINOR_VERSION) "." LOCKSTEP_TEXT(OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return "MPICH " MPICH_VERSION;
#else
  return "MPI";
#endif
}

std::unique_ptr<batch::Ranks> start() {
  // Some MPI libraries bind the process when they start. Where workers go is not theirs to say: who
  // wants a binding asks the launcher for it.
  const std::vector<unsigned> mask = topology::affinity_mask();
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  topology::set_affinity_mask(mask);
  if (provided < MPI_THREAD_FUNNELED) {
    MPI_Finalize();
    throw Error(ErrorCode::no_resource, "this MPI library cannot be used beside threads");
  }
  return std::make_unique<MpiRanks>();
}

}  // namespace lockstep::mpi
