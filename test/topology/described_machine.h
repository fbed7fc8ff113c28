// Machines that are not there: hwloc's synthetic strings, and XML files made from them with what a
// string cannot say (a restricted set of processors, kinds of cores).
#pragma once

#include <hwloc.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include "support/scoped_variable.h"
#include "topology/machine.h"

namespace lockstep::test {

inline topology::Machine synthetic(const std::string& description) {
  const ScopedVariable xml("HWLOC_XMLFILE", nullptr);
  const ScopedVariable text("HWLOC_SYNTHETIC", description.c_str());
  return topology::Machine::detect();
}

inline topology::Machine from_xml(const std::filesystem::path& file) {
  const ScopedVariable text("HWLOC_SYNTHETIC", nullptr);
  const ScopedVariable xml("HWLOC_XMLFILE", file.c_str());
  return topology::Machine::detect();
}

// Writes `description`, changed by `edit`, to an XML file and detects that machine.
inline topology::Machine edited(const std::string& description,
                                const std::function<void(hwloc_topology_t)>& edit,
                                const std::filesystem::path& file) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw std::runtime_error("hwloc_topology_init");
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  const bool loaded = hwloc_topology_set_synthetic(topology, description.c_str()) == 0 &&
                      hwloc_topology_load(topology) == 0;
  if (loaded) edit(topology);
  const bool written = loaded && hwloc_topology_export_xml(topology, file.c_str(), 0) == 0;
  hwloc_topology_destroy(topology);
  if (!written) throw std::runtime_error("cannot write " + file.string());
  return from_xml(file);
}

// A new, empty folder for one test case below the build tree.
inline std::filesystem::path scratch_dir(const std::string& name) {
  std::filesystem::path dir =
      std::filesystem::path(LOCKSTEP_BINARY_DIR) / "test" / "scratch" / "topology" / name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

}  // namespace lockstep::test
