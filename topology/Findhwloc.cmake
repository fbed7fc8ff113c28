# Finds hwloc, which ships no CMake package: defines hwloc::hwloc and hwloc_VERSION.
find_path(hwloc_INCLUDE_DIR hwloc.h)
find_library(hwloc_LIBRARY hwloc)
if(hwloc_INCLUDE_DIR AND EXISTS ${hwloc_INCLUDE_DIR}/hwloc/autogen/config.h)
  file(STRINGS ${hwloc_INCLUDE_DIR}/hwloc/autogen/config.h version_line REGEX "define HWLOC_VERSION \"")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" hwloc_VERSION "${version_line}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hwloc REQUIRED_VARS hwloc_LIBRARY hwloc_INCLUDE_DIR
                                  VERSION_VAR hwloc_VERSION)
if(hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(hwloc::hwloc PROPERTIES IMPORTED_LOCATION ${hwloc_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${hwloc_INCLUDE_DIR})
endif()
mark_as_advanced(hwloc_INCLUDE_DIR hwloc_LIBRARY)
