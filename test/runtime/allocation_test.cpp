// Running allocates nothing: counted in this program, whose operator new this file replaces.
#include <atomic>
#include <cstdlib>
#include <new>

#include "lockstep/lockstep.h"
#include "support/catch.h"
#include "support/model_run.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

// Not inlined: g++ would see free() on memory of operator new, and warn.
[[gnu::noinline]] void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  const std::size_t size = (bytes + alignment) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

}  // namespace

// The other forms of the library call these.
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("the count sees an allocation") {
  counting = true;
  const std::vector<int> some(100);
  counting = false;
  CHECK(allocations.exchange(0) >= 1);
  CHECK(some.size() == 100);
}

TEST_CASE("a hundred tokens after the first allocate nothing") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, demo_model());
    Session session(model, {.context = 128});
    float last = 0;
    const auto decode = [&](std::int32_t position) {
      const BatchEntry entry{1 + position % 100, position, 0, true};
      session.evaluate({&entry, 1});
      last = session.logits(0)[0];
    };
    decode(0);  // makes the plan and the team
    allocations = 0;
    counting = true;
    for (std::int32_t position = 1; position <= 100; ++position) decode(position);
    counting = false;
    INFO(threads << " threads, last logit " << last);
    CHECK(allocations.exchange(0) == 0);
  }
}
