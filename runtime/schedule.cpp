// Own slices and chunks.
#include "runtime/schedule.h"

#include <algorithm>

namespace lockstep {
namespace {

// A slice gives away its last quarter, in at most four chunks.
constexpr std::size_t kChunks = 4;
constexpr std::size_t kSharesOfSlice = 4 * kChunks;

// The least units of a chunk of this chain, 0 for no chunks.
std::size_t least_units(const Chain& chain, const std::vector<PlannedNode>& nodes,
                        const ops::Graph& graph) {
  std::size_t units = 0;
  for (const std::uint32_t node : chain.nodes) {
    const PlannedNode& planned = nodes[node];
    units = std::max(units, planned.op->chunk_units(graph.values()[planned.output].type));
  }
  return units;
}

std::size_t align_up(std::size_t units, std::size_t align) {
  return (units + align - 1) / align * align;
}

}  // namespace

void divide(Stage& stage, const std::vector<PlannedNode>& nodes, const ops::Graph& graph,
            const PlanOptions& options) {
  const bool everywhere = options.schedule == Schedule::dynamic;
  const bool may_chunk =
      options.workers > 1 && !options.reference &&
      (everywhere || (options.schedule == Schedule::automatic && options.numa_nodes == 1));
  if (may_chunk) stage.chunks.resize(options.workers);
  for (std::size_t c = 0; c < stage.chains.size(); ++c) {
    Chain& chain = stage.chains[c];
    const std::size_t align = chain.partition.align;
    const std::size_t least = everywhere ? 1 : least_units(chain, nodes, graph);
    for (unsigned worker = 0; worker < options.workers; ++worker) {
      ops::Slice own = chain.partition.slice({worker, options.workers, 0, 1});
      const std::size_t end = own.end;
      if (may_chunk && least > 0) {
        const std::size_t units = align_up(std::max(least, own.size() / kSharesOfSlice), align);
        const std::size_t most = everywhere ? align_up(own.size(), align) : own.size() / kChunks;
        const std::size_t given = std::min({kChunks * units, most / units * units, own.size()});
        // Slices begin at a multiple of the alignment, so chunks counted from there do, too.
        own.end = std::min(end, own.begin + align_up(own.size() - given, align));
        for (std::size_t at = own.end; at < end; at += units) {
          const ops::Slice part{at, std::min(end, at + units)};
          stage.chunks[worker].push_back({static_cast<std::uint32_t>(c), part});
        }
      }
      chain.own.push_back(own);
    }
  }
  const auto none = [](const std::vector<Chunk>& chunks) { return chunks.empty(); };
  if (std::ranges::all_of(stage.chunks, none)) stage.chunks.clear();
}

}  // namespace lockstep
