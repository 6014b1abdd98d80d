# Finds MLIR/LLVM 22 and links their shared libraries.
find_package(MLIR 22.1 REQUIRED CONFIG
  HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(LLMC_LLVM_BIN ${LLVM_TOOLS_BINARY_DIR})

add_library(llmc_mlir_flags INTERFACE)
target_include_directories(llmc_mlir_flags SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_link_libraries(llmc_mlir_flags INTERFACE llmc_flags MLIR LLVM)
target_compile_options(llmc_mlir_flags INTERFACE -fno-exceptions)

# llmc_mlir_library(name SOURCES... [LINK libs...] [DEPENDS targets...])
function(llmc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC llmc_mlir_flags ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# mlir_tablegen() searches the directory's include path.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
