# Finds OpenMP. LOCKSTEP_OPENMP chooses the runtime where the compiler leaves a choice: g++ calls its own
# libgomp by names that LLVM's libomp has, too, so the same objects run with either. They differ in how threads
# wait for each other (README.md, "Threads and instruction sets").
set(LOCKSTEP_OPENMP "" CACHE STRING "OpenMP runtime: empty for the compiler's own, or libomp (with g++)")
set_property(CACHE LOCKSTEP_OPENMP PROPERTY STRINGS "" libomp)

find_library(LOCKSTEP_LIBOMP NAMES omp libomp.so.5
  HINTS /usr/lib/llvm-19/lib /usr/lib/llvm-18/lib /usr/lib/llvm-17/lib /usr/lib/llvm-16/lib /usr/lib/llvm-15/lib
        /usr/lib/llvm-14/lib)
mark_as_advanced(LOCKSTEP_LIBOMP)

if(LOCKSTEP_OPENMP STREQUAL "libomp" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(NOT LOCKSTEP_LIBOMP)
    message(FATAL_ERROR "LOCKSTEP_OPENMP=libomp: no libomp was found. Install libomp-14-dev (or another version), "
      "or give its place with -DLOCKSTEP_LIBOMP=/path/to/libomp.so")
  endif()
  set(OpenMP_CXX_FLAGS -fopenmp)
  set(OpenMP_CXX_LIB_NAMES omp)
  set(OpenMP_omp_LIBRARY ${LOCKSTEP_LIBOMP})
elseif(LOCKSTEP_OPENMP AND NOT LOCKSTEP_OPENMP STREQUAL "libomp")
  message(FATAL_ERROR "LOCKSTEP_OPENMP=${LOCKSTEP_OPENMP} is not known: leave it empty or give libomp")
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)
