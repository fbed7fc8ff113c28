// Everything asked of hwloc is asked here, once, and copied into plain values: nobody else holds a
// topology object. The whole machine is loaded, disallowed parts included, because the limits are
// part of what a user wants to read; what may be used is then cut down to hwloc's allowed set and
// the affinity mask. The mask matters by itself: a Slurm job often restricts nothing else.
#include "topology/machine.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "topology/binding.h"

namespace lockstep::topology {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap new_bitmap() {
  Bitmap bitmap(hwloc_bitmap_alloc());
  if (!bitmap) throw std::bad_alloc();
  return bitmap;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("machine topology: " + what);
}

const char* non_empty_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// hwloc itself looks at these two variables, but falls back to this system when it cannot read what
// they hold. A study of a described machine would then silently describe the wrong one.
void use_described_machine(hwloc_topology_t topology) {
  if (const char* const file = non_empty_variable("HWLOC_XMLFILE")) {
    if (hwloc_topology_set_xml(topology, file) != 0) {
      fail("HWLOC_XMLFILE=" + std::string(file) + " cannot be read: " + std::strerror(errno));
    }
  } else if (const char* const text = non_empty_variable("HWLOC_SYNTHETIC")) {
    if (hwloc_topology_set_synthetic(topology, text) != 0) {
      fail("HWLOC_SYNTHETIC=\"" + std::string(text) +
           "\" is not a topology that hwloc understands");
    }
  }
}

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) fail("hwloc does not start");
  Topology topology(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  use_described_machine(raw);
  if (hwloc_topology_load(raw) != 0) {
    fail(std::string("hwloc cannot read it: ") + std::strerror(errno));
  }
  for (const char* const name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC"}) {
    const char* const value = non_empty_variable(name);
    if (value == nullptr) continue;
    // HWLOC_THISSYSTEM=1 is how a user says that the description is of this system.
    if (hwloc_topology_is_thissystem(raw) != 0 &&
        non_empty_variable("HWLOC_THISSYSTEM") == nullptr) {
      fail(std::string(name) + "=" + value + " was not used: hwloc fell back to this system");
    }
  }
  return topology;
}

unsigned index_of(hwloc_obj_t object) {
  return object->os_index == HWLOC_UNKNOWN_INDEX ? object->logical_index : object->os_index;
}

std::vector<hwloc_obj_t> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> found;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
    found.push_back(object);
  }
  return found;
}

// Virtual machines and some architectures show no cores: every processor then counts as one.
std::vector<hwloc_obj_t> core_objects(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> cores = objects(topology, HWLOC_OBJ_CORE);
  return cores.empty() ? objects(topology, HWLOC_OBJ_PU) : cores;
}

std::size_t count(hwloc_const_bitmap_t bitmap) {
  return static_cast<std::size_t>(std::max(hwloc_bitmap_weight(bitmap), 0));
}

std::vector<unsigned> indices(hwloc_const_bitmap_t bitmap) {
  std::vector<unsigned> found;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) {
    found.push_back(static_cast<unsigned>(i));
  }
  return found;
}

// The mask that is given, or that of the calling thread; of a described machine, or where the
// system does not tell, everything.
Bitmap inherited_mask(hwloc_topology_t topology, bool is_this_system,
                      const std::vector<unsigned>& given) {
  Bitmap mask = new_bitmap();
  if (is_this_system) {
    for (const unsigned processor : given.empty() ? affinity_mask() : given) {
      hwloc_bitmap_set(mask.get(), processor);
    }
  }
  if (hwloc_bitmap_iszero(mask.get()) != 0) {
    hwloc_bitmap_copy(mask.get(), hwloc_topology_get_allowed_cpuset(topology));
  }
  return mask;
}

// What hwloc knows of one kind of core on a machine with several.
struct CoreKind {
  Bitmap cpuset;
  int efficiency = -1;   // rank, higher is faster; -1 if unknown
  std::string type;      // "IntelCore", "IntelAtom", or ""
  double capacity = 0;   // Linux's measure of speed, or 0
  double frequency = 0;  // highest frequency, MHz, or 0
};

std::vector<CoreKind> core_kinds(hwloc_topology_t topology) {
  std::vector<CoreKind> kinds;
  const int n = hwloc_cpukinds_get_nr(topology, 0);
  for (int i = 0; i < n; ++i) {
    CoreKind kind;
    kind.cpuset = new_bitmap();
    unsigned info_count = 0;
    hwloc_info_s* infos = nullptr;
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(i), kind.cpuset.get(),
                                &kind.efficiency, &info_count, &infos, 0) != 0) {
      continue;
    }
    for (unsigned k = 0; k < info_count; ++k) {
      const std::string_view name = infos[k].name;
      if (name == "CoreType") kind.type = infos[k].value;
      if (name == "LinuxCapacity") kind.capacity = std::strtod(infos[k].value, nullptr);
      if (name == "FrequencyMaxMHz") kind.frequency = std::strtod(infos[k].value, nullptr);
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

// hwloc makes a kind of every difference in turbo frequency, so that most server processors would
// be "hybrid". A kind is slower here if it is ranked lower and is another type of core, or runs
// below 80 %.
bool is_slower(const CoreKind& kind, const CoreKind& best) {
  if (kind.efficiency < 0 || kind.efficiency >= best.efficiency) return false;
  if (kind.type != best.type) return true;
  const auto far_below = [](double value, double of) { return value > 0 && value < 0.8 * of; };
  if (kind.capacity > 0 && best.capacity > 0) return far_below(kind.capacity, best.capacity);
  return far_below(kind.frequency, best.frequency);
}

// Processors of `usable` that belong to a slower kind than the fastest in it.
Bitmap slow_processors(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
  const std::vector<CoreKind> kinds = core_kinds(topology);
  const CoreKind* best = nullptr;
  for (const CoreKind& kind : kinds) {
    if (hwloc_bitmap_intersects(kind.cpuset.get(), usable) == 0) continue;
    if (best == nullptr || kind.efficiency > best->efficiency) best = &kind;
  }
  Bitmap slow = new_bitmap();
  for (const CoreKind& kind : kinds) {
    if (best != nullptr && is_slower(kind, *best)) {
      hwloc_bitmap_or(slow.get(), slow.get(), kind.cpuset.get());
    }
  }
  return slow;
}

// Index of the node a core belongs to: of the nodes around it the smallest with memory.
// High-bandwidth and other extra memory beside it shares the cores of the main memory and has the
// higher numbers.
unsigned node_of(hwloc_const_bitmap_t core, const std::vector<hwloc_obj_t>& nodes) {
  struct Rank {
    bool no_memory;
    std::size_t processors;
    auto operator<=>(const Rank&) const = default;
  };
  std::optional<Rank> best_rank;
  unsigned best = 0;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    if (hwloc_bitmap_intersects(nodes[i]->cpuset, core) == 0) continue;
    const Rank rank{nodes[i]->attr->numanode.local_memory == 0, count(nodes[i]->cpuset)};
    if (best_rank && !(rank < *best_rank)) continue;
    best_rank = rank;
    best = i;
  }
  return best;
}

std::vector<hwloc_obj_t> nodes_by_index(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> nodes = objects(topology, HWLOC_OBJ_NUMANODE);
  std::sort(nodes.begin(), nodes.end(),
            [](hwloc_obj_t a, hwloc_obj_t b) { return index_of(a) < index_of(b); });
  if (nodes.empty()) fail("hwloc reports no NUMA node");
  return nodes;
}

std::string cpu_model(hwloc_topology_t topology) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
    for (hwloc_obj_t object : objects(topology, type)) {
      const char* const model = hwloc_obj_get_info_by_name(object, "CPUModel");
      if (model == nullptr || *model == '\0') continue;
      const std::string_view text(model);
      return std::string(text.substr(0, text.find_last_not_of(' ') + 1));  // CPUID pads with blanks
    }
  }
  return {};
}

void add_cores(Machine& machine, hwloc_topology_t topology, hwloc_const_bitmap_t usable,
               const std::vector<hwloc_obj_t>& nodes) {
  const Bitmap slow = slow_processors(topology, usable);
  for (hwloc_obj_t object : core_objects(topology)) {
    ++machine.total_cores;
    const Bitmap processors = new_bitmap();
    hwloc_bitmap_and(processors.get(), object->cpuset, usable);
    if (hwloc_bitmap_iszero(processors.get()) != 0) continue;
    if (hwloc_bitmap_intersects(processors.get(), slow.get()) != 0) {
      ++machine.slow_cores;
      continue;
    }
    const unsigned node = node_of(object->cpuset, nodes);
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    const hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, object);
    machine.nodes[node].cores.push_back(static_cast<unsigned>(machine.cores.size()));
    machine.cores.push_back({index_of(object), node, indices(processors.get()),
                             package != nullptr ? package->logical_index : 0,
                             cache != nullptr ? cache->logical_index : node});
  }
}

}  // namespace

Machine Machine::detect(const std::vector<unsigned>& mask) {
  const Topology owner = load_topology();
  hwloc_topology_t topology = owner.get();
  Machine machine;
  machine.is_this_system = hwloc_topology_is_thissystem(topology) != 0;
  machine.cpu_model = lockstep::topology::cpu_model(topology);
  machine.packages = static_cast<unsigned>(objects(topology, HWLOC_OBJ_PACKAGE).size());
  machine.total_processors = objects(topology, HWLOC_OBJ_PU).size();

  const std::vector<hwloc_obj_t> nodes = nodes_by_index(topology);
  const hwloc_const_bitmap_t allowed_nodes = hwloc_topology_get_allowed_nodeset(topology);
  for (hwloc_obj_t node : nodes) {
    const bool allowed = hwloc_bitmap_intersects(node->nodeset, allowed_nodes) != 0;
    machine.nodes.push_back({index_of(node), allowed ? node->attr->numanode.local_memory : 0, {}});
  }

  const Bitmap usable = inherited_mask(topology, machine.is_this_system, mask);
  machine.mask_processors = count(usable.get());
  machine.allowed_processors = count(hwloc_topology_get_allowed_cpuset(topology));
  hwloc_bitmap_and(usable.get(), usable.get(), hwloc_topology_get_allowed_cpuset(topology));
  add_cores(machine, topology, usable.get(), nodes);
  if (machine.cores.empty()) {
    fail("no usable processor: the affinity mask has " + std::to_string(machine.mask_processors) +
         ", the system allows " + std::to_string(machine.allowed_processors) + ", none in common");
  }
  return machine;
}

}  // namespace lockstep::topology
