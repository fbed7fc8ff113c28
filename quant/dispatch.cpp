// The one list of kernels, and the choice among them. A kernel that is not listed here does not
// exist: loading, tests, fuzzers and benches all iterate over all_matmul_kernels().
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "quant/encode.h"
#include "quant/kernels.h"
#include "quant/packing.h"
#include "quant/peaks.h"
#include "quant/q4x.h"
#include "quant/scalar/kernels.h"
#if defined(LOCKSTEP_HAS_AVX2)
#include "quant/avx2/kernels.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_1.h"
#include "quant/formats/q5_0.h"
#include "quant/formats/q5_1.h"
#include "quant/formats/q8_0.h"
#endif
#if defined(LOCKSTEP_HAS_AVXVNNI)
#include "quant/avxvnni/kernels.h"
#endif
#if defined(LOCKSTEP_HAS_AVX512)
#include "quant/avx512/kernels.h"
#endif
#if defined(LOCKSTEP_HAS_NEON)
#include "quant/neon/kernels.h"
#endif
#if defined(LOCKSTEP_HAS_DOTPROD)
#include "quant/dotprod/kernels.h"
#endif
#if defined(LOCKSTEP_HAS_I8MM)
#include "quant/i8mm/kernels.h"
#endif

namespace lockstep::quant {
namespace {

// What packing.h lays out, and where each instruction set has its kernel for it.
struct PanelFormat {
  Format format;
  std::size_t (*panel_bytes)(std::size_t k) noexcept;
  PackRows* pack;
  MatmulRun* PanelRuns::*run;
};

template <Format kFormat>
constexpr PanelFormat panel_format(PackRows* pack, MatmulRun* PanelRuns::*run) {
  return {kFormat, panel_bytes<kFormat>, pack, run};
}

constexpr PanelFormat kPanelFormats[] = {
    panel_format<Format::q4_0>(pack_q4_0, &PanelRuns::q4_0),
    panel_format<Format::q4_1>(pack_q4_1, &PanelRuns::q4_1),
    panel_format<Format::q5_0>(pack_q5_0, &PanelRuns::q5_0),
    panel_format<Format::q5_1>(pack_q5_1, &PanelRuns::q5_1),
    panel_format<Format::q8_0>(pack_q8_0, &PanelRuns::q8_0),
    panel_format<Format::q2_k>(pack_q2_k, &PanelRuns::q2_k),
    panel_format<Format::q3_k>(pack_q3_k, &PanelRuns::q3_k),
    panel_format<Format::q4_k>(pack_q4_k, &PanelRuns::q4_k),
    panel_format<Format::q5_k>(pack_q5_k, &PanelRuns::q5_k),
    panel_format<Format::q6_k>(pack_q6_k, &PanelRuns::q6_k),
    panel_format<Format::iq4_nl>(pack_iq4_nl, &PanelRuns::iq4_nl),
    panel_format<Format::iq4_xs>(pack_iq4_xs, &PanelRuns::iq4_xs),
    panel_format<Format::mxfp4>(pack_mxfp4, &PanelRuns::mxfp4),
    panel_format<Format::nvfp4>(pack_nvfp4, &PanelRuns::nvfp4),
    panel_format<Format::q4x>(pack_q4x, &PanelRuns::q4x),
};

// A kernel on the file's own rows.
struct RowRun {
  Format format;
  std::size_t (*row_bytes)(std::size_t k) noexcept;
  PackRows* copy;
  MatmulRun* run;
};

template <Format kFormat>
constexpr RowRun row_run(MatmulRun* run) {
  constexpr auto row_bytes = [](std::size_t k) noexcept { return bytes_of(kFormat, k); };
  constexpr auto copy = [](const std::byte* file_rows, std::size_t rows, std::size_t k,
                           std::byte* panel) noexcept {
    std::memcpy(panel, file_rows, rows * bytes_of(kFormat, k));
  };
  return {kFormat, row_bytes, copy, run};
}

// What an instruction set brings; its parts may be empty or null where a set that it includes
// serves.
struct IsaKernels {
  Isa isa;
  const PanelRuns* panels = nullptr;
  std::span<const RowRun> rows{};
  const RowKernels* row_kernels = nullptr;
  const PeakLoops* peaks = nullptr;
};

#if defined(LOCKSTEP_HAS_AVX2)
constexpr RowRun kAvx2Rows[] = {
    row_run<Format::iq1_s>(avx2::run_iq1_s),     row_run<Format::iq1_m>(avx2::run_iq1_m),
    row_run<Format::iq2_xxs>(avx2::run_iq2_xxs), row_run<Format::iq2_xs>(avx2::run_iq2_xs),
    row_run<Format::iq2_s>(avx2::run_iq2_s),     row_run<Format::iq3_xxs>(avx2::run_iq3_xxs),
    row_run<Format::iq3_s>(avx2::run_iq3_s),     row_run<Format::tq1_0>(avx2::run_tq1_0),
    row_run<Format::tq2_0>(avx2::run_tq2_0),
};
#endif

// In ascending order of preference.
constexpr IsaKernels kIsaKernels[] = {
    {.isa = Isa::scalar, .row_kernels = &scalar::kRowKernels, .peaks = &scalar::kPeakLoops},
#if defined(LOCKSTEP_HAS_AVX2)
    {.isa = Isa::avx2,
     .panels = &avx2::kPanelRuns,
     .rows = kAvx2Rows,
     .row_kernels = &avx2::kRowKernels,
     .peaks = &avx2::kPeakLoops},
#endif
#if defined(LOCKSTEP_HAS_AVXVNNI)
    {.isa = Isa::avxvnni, .panels = &avxvnni::kPanelRuns, .peaks = &avxvnni::kPeakLoops},
#endif
#if defined(LOCKSTEP_HAS_AVX512)
    {.isa = Isa::avx512, .panels = &avx512::kKBlockRuns},
    {.isa = Isa::avx512,
     .panels = &avx512::kBlockRuns,
     .row_kernels = &avx512::kRowKernels,
     .peaks = &avx512::kPeakLoops},
#endif
#if defined(LOCKSTEP_HAS_NEON)
    {.isa = Isa::neon,
     .panels = &neon::kPanelRuns,
     .row_kernels = &neon::kRowKernels,
     .peaks = &neon::kPeakLoops},
#endif
#if defined(LOCKSTEP_HAS_DOTPROD)
    {.isa = Isa::dotprod, .panels = &dotprod::kPanelRuns, .peaks = &dotprod::kPeakLoops},
#endif
#if defined(LOCKSTEP_HAS_I8MM)
    {.isa = Isa::i8mm, .panels = &i8mm::kPanelRuns, .peaks = &i8mm::kPeakLoops},
#endif
};

struct EncoderOf {
  Format format;
  Encoder encode;
};

#if defined(LOCKSTEP_HAS_AVX2)
template <Encoder SearchingEncoders::*kSearching, auto kSimple = nullptr>
constexpr Encoder kAvx2 = encode_with<avx2::kEncoders, kSearching, kSimple>;

using Searching = SearchingEncoders;

constexpr EncoderOf kAvx2Encoders[] = {
    {Format::q2_k, kAvx2<&Searching::q2_k>},
    {Format::q3_k, kAvx2<&Searching::q3_k>},
    {Format::q4_k, kAvx2<&Searching::q4_k>},
    {Format::q5_k, kAvx2<&Searching::q5_k>},
    {Format::q6_k, kAvx2<&Searching::q6_k>},
    {Format::iq4_nl, kAvx2<&Searching::iq4_nl>},
    {Format::iq4_xs, kAvx2<&Searching::iq4_xs>},
    {Format::mxfp4, kAvx2<&Searching::mxfp4>},
    {Format::nvfp4, kAvx2<&Searching::nvfp4>},
    {Format::q4_0, kAvx2<&Searching::q4_0, q4_0::encode>},
    {Format::q4_1, kAvx2<&Searching::q4_1, q4_1::encode>},
    {Format::q5_0, kAvx2<&Searching::q5_0, q5_0::encode>},
    {Format::q5_1, kAvx2<&Searching::q5_1, q5_1::encode>},
    {Format::q8_0, kAvx2<&Searching::q8_0, q8_0::encode>},
};
#else
constexpr std::array<EncoderOf, 0> kAvx2Encoders;
#endif

// Filled once, on first use: the scalar part depends on the format table.
class KernelList {
 public:
  KernelList() {
    std::array<MatmulKernel, scalar::kMaxMatmulKernels> plain{};
    const std::size_t count = scalar::matmul_kernels(plain);
    for (const MatmulKernel& kernel : std::span(plain).first(count)) add(kernel);
    for (const IsaKernels& isa : kIsaKernels) {
      for (const PanelFormat& panel : kPanelFormats) {
        MatmulRun* const run = isa.panels == nullptr ? nullptr : isa.panels->*panel.run;
        if (run == nullptr) continue;
        add({{}, panel.format, isa.isa, kPanelRows, panel.panel_bytes, panel.pack, run});
      }
      for (const RowRun& row : isa.rows) {
        add({{}, row.format, isa.isa, 1, row.row_bytes, row.copy, row.run});
      }
    }
  }

  std::span<const MatmulKernel> kernels() const noexcept { return kernels_; }

 private:
  // Gives the kernel its name, such as "q4_0/avx2/r8".
  void add(MatmulKernel kernel) {
    std::string& name = names_.emplace_back(traits(kernel.format).name);
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    name.append("/").append(name_of(kernel.isa)).append("/r");
    name.append(std::to_string(kernel.panel_rows));
    kernel.name = name;
    kernels_.push_back(kernel);
  }

  std::deque<std::string> names_;  // elements stay where they are
  std::vector<MatmulKernel> kernels_;
};

}  // namespace

std::span<const MatmulKernel> all_matmul_kernels() noexcept {
  static const KernelList list;
  return list.kernels();
}

const MatmulKernel* find_matmul(Format format, Isa isa) noexcept {
  const MatmulKernel* best = nullptr;
  for (const MatmulKernel& kernel : all_matmul_kernels()) {
    if (kernel.format != format || !includes(isa, kernel.isa)) continue;
    if (best == nullptr || kernel.isa > best->isa) best = &kernel;
  }
  return best;
}

Encoder find_encoder(Format format, Isa isa) noexcept {
  if (includes(isa, Isa::avx2)) {
    for (const EncoderOf& encoder : kAvx2Encoders) {
      if (encoder.format == format) return encoder.encode;
    }
  }
  return traits(format).encode;
}

std::unique_ptr<SideLearner> make_side_learner(Format format, std::size_t rows,
                                               std::size_t columns) {
  if (format != Format::q4x) return nullptr;
  return std::make_unique<q4x::Learner>(rows, columns);
}

SideEncoder find_side_encoder(Format format, Isa isa) noexcept {
  return format == Format::q4x ? q4x::find_encoder(isa) : nullptr;
}

const RowKernels& row_kernels(Isa isa) noexcept {
  const RowKernels* best = nullptr;
  for (const IsaKernels& part : kIsaKernels) {
    if (part.row_kernels != nullptr && includes(isa, part.isa)) best = part.row_kernels;
  }
  return *best;
}

PeakLoops peak_loops(Isa isa) noexcept {
  PeakLoops best;
  for (const IsaKernels& part : kIsaKernels) {
    if (part.peaks != nullptr && includes(isa, part.isa)) best = *part.peaks;
  }
  return best;
}

}  // namespace lockstep::quant
