//===- WriteCorpus.cpp - makes the seeds of fuzz-artifact -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// artifact-corpus FOLDER writes headers of small artifacts, and one whole file.
//
//===----------------------------------------------------------------------===//

#include "runtime/schema/Prefix.h"
#include "tests/unit/support/ChainModel.h"

#include <cstring>
#include <fstream>

using llmc::test::ChainModel;

namespace {

void write(const std::string &path, std::span<const uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// The header alone, with its sections where FuzzArtifact.cpp puts them.
void writeHeader(const std::string &path, ChainModel chain) {
  chain.codeOffset = 2 * llmc::kSectionAlignment;
  chain.codeBytes = 100;
  const std::vector<uint8_t> bytes = chain.build();
  llmc::ArtifactPrefix prefix;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  write(path, std::span(bytes).subspan(prefix.headerOffset, prefix.headerSize));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 1;
  const std::string folder = std::string(argv[1]) + "/";
  ChainModel chain = ChainModel::counting(20);
  writeHeader(folder + "chain", chain);
  chain.window = 8;
  chain.capacity = 23;
  chain.verifyRows = 0;
  writeHeader(folder + "window", chain);
  ChainModel cuda = ChainModel::counting(20);
  cuda.variants.push_back({"sm90", {}, 90});
  cuda.layered = true;
  cuda.ptx = "no text";
  writeHeader(folder + "cuda", cuda);
  chain.variants = {{"v4", {"avx512f", "avx512vnni"}}, {"v3", {"avx2"}}};
  chain.withTokenizer = false;
  writeHeader(folder + "variants", chain);
  std::vector<uint8_t> file = chain.build();
  file.resize(4200);
  file.insert(file.begin(), 0xff);
  write(folder + "file-truncated", file);
  return 0;
}
