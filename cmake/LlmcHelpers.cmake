# Shared build rules: warnings, sanitizers, ccache, and llmc_library().
find_program(LLMC_CCACHE ccache)
if(LLMC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${LLMC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LLMC_CCACHE})
endif()

add_library(llmc_flags INTERFACE)
target_include_directories(llmc_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime/include
  ${PROJECT_BINARY_DIR})
target_compile_options(llmc_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti> -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>) # false alarms of GCC 12 on std::string
if(LLMC_SANITIZE)
  target_compile_options(llmc_flags INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
  target_link_options(llmc_flags INTERFACE -fsanitize=address,undefined)
endif()
if(LLMC_FUZZ)
  target_compile_options(llmc_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(llmc_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# llmc_library(name SOURCES... [LINK libs...]): a static library with the project's flags.
function(llmc_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC llmc_flags ${ARG_LINK})
endfunction()
