# The one place with instruction-set flags.
# lockstep_isa_sources(TARGET ISA SOURCE...) compiles sources for one instruction set. Such a source may
# hold intrinsics and code in an anonymous namespace only: a shared inline function compiled here could
# be the copy that the linker keeps for everybody.
set(LOCKSTEP_ISA_FLAGS_scalar "")
set(LOCKSTEP_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(LOCKSTEP_ISA_FLAGS_avxvnni ${LOCKSTEP_ISA_FLAGS_avx2} -mavxvnni)
set(LOCKSTEP_ISA_FLAGS_avx512 ${LOCKSTEP_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
    -mavx512vnni)
# The AVX-512 header of g++ 12 makes its undefined values by initializing a variable with itself.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND LOCKSTEP_ISA_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
endif()
set(LOCKSTEP_ISA_FLAGS_neon "")
set(LOCKSTEP_ISA_FLAGS_dotprod -march=armv8.2-a+dotprod)
set(LOCKSTEP_ISA_FLAGS_i8mm -march=armv8.2-a+dotprod+i8mm)
# For ARM g++ moves the loads of a kernel to its front before it assigns registers, and additions to where
# their sum is used. Both keep more values alive than there are registers: twice the instructions for Q4_K.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(isa neon dotprod i8mm)
    list(APPEND LOCKSTEP_ISA_FLAGS_${isa} -fno-schedule-insns -fno-tree-ter)
  endforeach()
endif()

set(LOCKSTEP_ISAS scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND LOCKSTEP_ISAS avx2 avxvnni avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND LOCKSTEP_ISAS neon dotprod i8mm)
endif()

function(lockstep_isa_sources target isa)
  if(isa IN_LIST LOCKSTEP_ISAS)
    target_sources(${target} PRIVATE ${ARGN})
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${LOCKSTEP_ISA_FLAGS_${isa}})
  endif()
endfunction()
