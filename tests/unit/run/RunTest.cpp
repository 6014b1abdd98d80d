//===- RunTest.cpp - the command line of llmc-run, from outside -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Topology.h"
#include "tests/unit/support/ChainModel.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/wait.h>

using namespace llmc::test;
using Json = nlohmann::json;

namespace {

struct Outcome {
  int exitStatus;
  std::string out, err;
};

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs llmc-run through the shell; `arguments` follow the model.
Outcome run(const std::string &model, const std::string &arguments) {
  const std::string errors = testing::TempDir() + "llmc-run-test-errors";
  const std::string command =
      std::string(LLMC_RUN) + " " + model + " " + arguments + " 2>" + errors;
  std::FILE *pipe = popen(command.c_str(), "r");
  Outcome outcome;
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    outcome.out.append(buffer, count);
  const int status = pclose(pipe);
  outcome.exitStatus = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.err = readFile(errors);
  std::remove(errors.c_str());
  return outcome;
}

/// Exit status 1 and one line that holds `part`.
void expectRefusal(const Outcome &outcome, const char *part) {
  EXPECT_EQ(outcome.exitStatus, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

class Run : public testing::Test {
protected:
  static ChainModel chain() {
    ChainModel model = ChainModel::counting(40);
    model.endTokens = {30};
    model.chatTemplate = "{% for m in messages %}t1 {{ m.content }}{% endfor %}";
    return model;
  }
  const std::string model = chain().write();
};

TEST_F(Run, TextOnStdoutSpeedOnStderr) {
  const Outcome outcome = run(model, "-p 't5 t6 ' -n 3");
  EXPECT_EQ(outcome.exitStatus, 0);
  EXPECT_EQ(outcome.out, "t7 t8 t9 \n");
  EXPECT_NE(outcome.err.find("tokens/s"), std::string::npos);
}

TEST_F(Run, DraftsAreReported) {
  const std::string arguments = "--tokens 0,1,2,0,1 -n 6 --json";
  const Json plain = Json::parse(run(model, arguments).out);
  const Json drafted = Json::parse(run(model, arguments + " --draft ngram --draft-always").out);
  EXPECT_EQ(drafted["tokens"], plain["tokens"]);
  EXPECT_EQ(plain["drafts"]["steps"], 5);
  EXPECT_EQ(plain["drafts"]["proposed"], 0);
  // The first token is 2. After 0, 1, 2 came 0, 1, 2 in the prompt; now comes 3, and nothing that
  // follows has been there before.
  EXPECT_EQ(drafted["drafts"]["verify_steps"], 1);
  EXPECT_EQ(drafted["drafts"]["proposed"], 3);
  EXPECT_EQ(drafted["drafts"]["accepted"], 0);
}

TEST_F(Run, Profile) {
  const std::string path = testing::TempDir() + "llmc-run-test-profile";
  const Outcome outcome = run(model, "--tokens 1,2 -n 4 --profile " + path);
  EXPECT_EQ(outcome.exitStatus, 0);
  EXPECT_NE(outcome.err.find("decode: 3 steps"), std::string::npos) << outcome.err;
  const Json profile = Json::parse(readFile(path));
  std::remove(path.c_str());
  ASSERT_EQ(profile["dispatches"].size(), 6u) << "of prefill and decode";
  EXPECT_EQ(profile["dispatches"][5]["phase"], "decode");
  EXPECT_EQ(profile["dispatches"][5]["op"], "test");
  EXPECT_EQ(profile["dispatches"][5]["calls"], 3);
  EXPECT_EQ(profile["dispatches"][5]["bytes"], 3 * 64);
}

TEST_F(Run, BenchVerify) {
  const Json json = Json::parse(run(model, "--bench-verify --repeat 1 --json").out);
  ASSERT_EQ(json["steps"].size(), 4u);
  EXPECT_EQ(json["steps"][0]["relative"], 1);
  EXPECT_EQ(json["steps"][3]["tokens"], 4);
  EXPECT_EQ(json["position"], 60) << "the context has 64";
  EXPECT_NE(run(model, "--bench-verify").out.find("relative"), std::string::npos);
}

TEST_F(Run, Json) {
  const Json json = Json::parse(run(model, "--tokens 27,28 --json").out);
  EXPECT_EQ(json["text"], "t29 ");
  EXPECT_EQ(json["tokens"], Json({29}));
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(json["usage"]["completion_tokens"], 1);
  EXPECT_EQ(json["usage"]["total_tokens"], 3);
  EXPECT_EQ(Json::parse(run(model, "--tokens 1 -n 2 --json").out)["finish_reason"], "length");
}

TEST_F(Run, PromptFromFileAndStandardInput) {
  const std::string file = testing::TempDir() + "llmc-run-test-prompt";
  std::ofstream(file) << "t3 ";
  EXPECT_EQ(run(model, "-f " + file + " -n 1").out, "t4 \n");
  EXPECT_EQ(run(model, "-f - -n 1 <" + file).out, "t4 \n");
  std::remove(file.c_str());
}

TEST_F(Run, StopAndSeed) {
  EXPECT_EQ(run(model, "--tokens 1 --stop zz --stop 't4 t5'").out, "t2 t3 \n");
  const std::string sampled = "--tokens 1 -n 20 --temp 5 --top-k 30 --top-p 0.9 --seed ";
  EXPECT_EQ(run(model, sampled + "7").out, run(model, sampled + "7").out);
}

TEST_F(Run, Chat) {
  EXPECT_EQ(run(model, "--chat -p 't5 ' -n 2").out, "t6 t7 \n");
  const std::string lines = testing::TempDir() + "llmc-run-test-lines";
  std::ofstream(lines) << "t5 \n\nt9 \n";
  EXPECT_EQ(run(model, "--chat -n 2 <" + lines).out, "t6 t7 \nt10 t11 \n");
  std::remove(lines.c_str());
}

TEST_F(Run, TokenizeAndDetokenize) {
  EXPECT_EQ(Json::parse(run(model, "--tokenize -p 't5 t30 '").out)["ids"][0], 5);
  EXPECT_EQ(Json::parse(run(model, "--tokenize --special -p 't5 t30 '").out)["ids"], Json({5, 30}));
  EXPECT_EQ(run(model, "--detokenize 5,6").out, "t5 t6 ");
  EXPECT_EQ(run(model, "--detokenize 5,30").out, "t5 ");
  EXPECT_EQ(run(model, "--detokenize 5,30 --special").out, "t5 t30 ");
}

TEST_F(Run, LogitsAreAnArray) {
  const std::string file = testing::TempDir() + "llmc-run-test.npy";
  EXPECT_EQ(run(model, "--tokens 3,4,5 --logits " + file).exitStatus, 0);
  const std::string bytes = readFile(file);
  std::remove(file.c_str());
  ASSERT_GT(bytes.size(), 10u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(bytes.find("'descr': '<f4', 'fortran_order': False, 'shape': (3, 40)"),
            std::string::npos);
  const size_t header = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  EXPECT_EQ(header % 64, 0u);
  ASSERT_EQ(bytes.size(), header + 3 * 40 * sizeof(float));
  float best;
  std::memcpy(&best, bytes.data() + header + (2 * 40 + 6) * sizeof(float), sizeof best);
  EXPECT_EQ(best, 10.0f);
}

TEST_F(Run, BenchAndConfig) {
  const Json bench = Json::parse(run(model, "--bench 20,10 --repeat 2 --json").out);
  for (const char *key : {"prefill_tok_s", "decode_tok_s", "ttft_ms", "load_ms", "read_gb_s",
                          "bandwidth_gb_s", "spread"})
    EXPECT_TRUE(bench[key].is_number()) << key;
  const Json config = Json::parse(run(model, "--print-config --json --threads 3").out);
  EXPECT_EQ(config["threads"], 3);
  EXPECT_EQ(config["variant"], "any");
  const std::string cpu = std::to_string(llmc::rt::affinityCpus().front());
  // taskset leaves one core; without a model the machine's part is still there.
  const std::string pinned = testing::TempDir() + "llmc-run-test-pinned";
  ASSERT_EQ(
      std::system(("taskset -c " + cpu + " " LLMC_RUN " --print-config --json >" + pinned).c_str()),
      0);
  EXPECT_EQ(Json::parse(readFile(pinned))["threads"], 1);
  ASSERT_EQ(std::system(("LLMC_THREADS=5 " LLMC_RUN " --print-config --json >" + pinned).c_str()),
            0);
  EXPECT_EQ(Json::parse(readFile(pinned))["threads"], 5);
  std::remove(pinned.c_str());
}

TEST_F(Run, Refusals) {
  expectRefusal(run("", ""), "MODEL.llmc");
  expectRefusal(run(model, ""), "-p TEXT");
  expectRefusal(run("/no/such.llmc", "-p x"), "/no/such.llmc");
  expectRefusal(run(model, "--tokens 1,x"), "item 2, 'x'");
  expectRefusal(run(model, "--tokens 1,40"), "40");
  expectRefusal(run(model, "--tokens 1,-1"), "-1");
  expectRefusal(run(model, "--bench 5"), "512,128");
  expectRefusal(run(model, "--no-such-option"), "--no-such-option");
  expectRefusal(run(model, "-p x --tokens 1"), "--help");
  expectRefusal(run(model, "--tokens 1 --temp -1"), "temperature");
  expectRefusal(run(model, "--tokens 1 --variant fast"), "any");
  expectRefusal(run(model, "--tokens 1 --device cuda"), "CUDA");
  expectRefusal(run(model, "--tokens 1 --context 65"), "65");
  expectRefusal(run(model, "--tokens 1 --logits /no/such/folder/x.npy"), "/no/such/folder");
  std::string many = "--tokens 1";
  for (int i = 0; i < 64; ++i)
    many += ",1";
  expectRefusal(run(model, many), "65 tokens and the context 64");
}

TEST_F(Run, WithoutTokenizer) {
  ChainModel bare = chain();
  bare.withTokenizer = false;
  const std::string path = bare.write();
  EXPECT_EQ(run(path, "--tokens 1 -n 3").out, "2,3,4\n");
  expectRefusal(run(path, "-p x"), "--tokens");
  expectRefusal(run(path, "--chat"), "tokenizer");
}

} // namespace
