// Pinning the calling thread, and asking where it runs.
#pragma once

#include <optional>
#include <vector>

namespace lockstep::topology {

// Binds the calling thread to one processor (OS index). False if the system refuses.
bool pin_this_thread(unsigned processor) noexcept;
// The processor that the calling thread runs on now.
std::optional<unsigned> current_processor() noexcept;
// The calling thread's affinity mask as ascending OS indices (empty if unknown), and setting it
// back.
std::vector<unsigned> affinity_mask();
bool set_affinity_mask(const std::vector<unsigned>& processors) noexcept;

}  // namespace lockstep::topology
