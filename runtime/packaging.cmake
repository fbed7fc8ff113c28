# Installing: libraries, headers, the package that find_package(lockstep) finds, the command and its demo
# model. The installed tree can be moved: nothing in it holds the prefix.
#
#   find_package(lockstep REQUIRED)
#   target_link_libraries(app PRIVATE lockstep::lockstep)   # or lockstep::ops, lockstep::quant, ...
#
# Headers keep their spelling: include/ serves <lockstep/lockstep.h>, include/lockstep/ serves "ops/ops.h".
set(lockstep_libraries lockstep lockstep_ops lockstep_quant lockstep_topology)
# Used inside the libraries only: a consumer of the installed package needs no headers of theirs.
set(lockstep_header_only Eigen3::Eigen nlohmann_json::nlohmann_json CLI11::CLI11)
set(lockstep_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

foreach(library IN LISTS lockstep_libraries)
  string(REGEX REPLACE "^lockstep_" "" export_name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${export_name})
  add_library(lockstep::${export_name} ALIAS ${library})
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_include_directories(${library} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lockstep>)
  get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
  if(links)
    foreach(header_only IN LISTS lockstep_header_only)
      list(REMOVE_ITEM links "$<LINK_ONLY:${header_only}>")
    endforeach()
    set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
  endif()
endforeach()

install(TARGETS ${lockstep_libraries} EXPORT lockstepTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION ${lockstep_package_dir})

install(DIRECTORY runtime/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Folders of one instruction set are sources more than headers; runtime/include went first; the command
# line and its MPI are no library.
install(DIRECTORY quant ops topology runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep
        FILES_MATCHING PATTERN "*.h"
        PATTERN "runtime/include" EXCLUDE PATTERN "runtime/cli" EXCLUDE PATTERN "runtime/demo" EXCLUDE
        PATTERN "runtime/mpi" EXCLUDE
        REGEX "/quant/(scalar|avx|neon|sve|amx)[^/]*$" EXCLUDE)

configure_package_config_file(runtime/lockstepConfig.cmake.in ${CMAKE_BINARY_DIR}/lockstepConfig.cmake
                              INSTALL_DESTINATION ${lockstep_package_dir})
# Before 1.0 any minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lockstepConfig.cmake ${CMAKE_BINARY_DIR}/lockstepConfigVersion.cmake
              topology/Findhwloc.cmake
        DESTINATION ${lockstep_package_dir})

if(TARGET lockstep_cli)
  install(TARGETS lockstep_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES runtime/demo/storyteller-f16.gguf runtime/demo/MODEL_CARD.md LICENSE
        DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
