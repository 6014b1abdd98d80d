# The micro-kernels and the weight formats for another architecture than the compiler's: its tests run
# there. They need headers of LLVM, none of its libraries; without the headers there are no such tests.
find_path(LLMC_LLVM_HEADERS llvm/ADT/StringRef.h HINTS /usr/lib/llvm-22/include
  NO_CMAKE_FIND_ROOT_PATH)
if(LLMC_LLVM_HEADERS)
  set(LLMC_LLVM_BIN ${LLMC_LLVM_HEADERS}/../bin)
  add_library(llmc_mlir_flags INTERFACE)
  target_include_directories(llmc_mlir_flags SYSTEM INTERFACE ${LLMC_LLVM_HEADERS})
  target_link_libraries(llmc_mlir_flags INTERFACE llmc_flags)
  target_compile_definitions(llmc_mlir_flags INTERFACE LLVM_DISABLE_ABI_BREAKING_CHECKS_ENFORCING=1)
  target_compile_options(llmc_mlir_flags INTERFACE -fno-exceptions)
  add_subdirectory(compiler/weights)
  add_subdirectory(compiler/codegen/kernels)
endif()
