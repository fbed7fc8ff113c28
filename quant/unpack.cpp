// One instance of unpack_block() per format that formats/unpacked.h computes with.
#include "quant/unpack.h"

#include "quant/formats/iq1_m.h"
#include "quant/formats/iq1_s.h"
#include "quant/formats/iq2_s.h"
#include "quant/formats/iq2_xs.h"
#include "quant/formats/iq2_xxs.h"
#include "quant/formats/iq3_s.h"
#include "quant/formats/iq3_xxs.h"
#include "quant/formats/tq1_0.h"
#include "quant/formats/tq2_0.h"

namespace lockstep::quant {
namespace {

template <class Block>
void unpack_as(const std::byte* block, UnpackedBlock& unpacked) noexcept {
  for (std::size_t i = 0; i < 8; ++i) {
    const auto scale_at = [&](std::size_t value) noexcept {
      return static_cast<std::uint32_t>(Block::group_scale(block, value / Block::kGroup));
    };
    unpacked.scales[i] = scale_at(32 * i) | (scale_at(32 * i + 16) << 16);
  }
  unpacked.scale = Block::scale(block) * Block::kUnit;
  Block::unpack(block, unpacked.q);
}

}  // namespace

#define LOCKSTEP_UNPACK(FORMAT)                                                                 \
  template <>                                                                                   \
  void unpack_block<Format::FORMAT>(const std::byte* block, UnpackedBlock& unpacked) noexcept { \
    unpack_as<FORMAT::Block>(block, unpacked);                                                  \
  }
LOCKSTEP_UNPACK(iq1_s)
LOCKSTEP_UNPACK(iq1_m)
LOCKSTEP_UNPACK(iq2_xxs)
LOCKSTEP_UNPACK(iq2_xs)
LOCKSTEP_UNPACK(iq2_s)
LOCKSTEP_UNPACK(iq3_xxs)
LOCKSTEP_UNPACK(iq3_s)
LOCKSTEP_UNPACK(tq1_0)
LOCKSTEP_UNPACK(tq2_0)
#undef LOCKSTEP_UNPACK

}  // namespace lockstep::quant
