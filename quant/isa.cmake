# The one place with instruction-set flags.
# lockstep_isa_sources(TARGET ISA SOURCE...) compiles sources for one instruction set. Such a source may
# hold intrinsics and code in an anonymous namespace only: a shared inline function compiled here could
# be the copy that the linker keeps for everybody.
set(LOCKSTEP_ISA_FLAGS_scalar "")
set(LOCKSTEP_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)

set(LOCKSTEP_ISAS scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND LOCKSTEP_ISAS avx2)
endif()

function(lockstep_isa_sources target isa)
  if(isa IN_LIST LOCKSTEP_ISAS)
    target_sources(${target} PRIVATE ${ARGN})
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${LOCKSTEP_ISA_FLAGS_${isa}})
  endif()
endfunction()
