"""Drafts change the speed and never the tokens (field reports e1 and e5)."""

import unittest

from harness import DATA, LLMC_RUN, TestCase, compiled, generate, ids, model, reference, run, succeed

TEXT = """\
The lighthouse stood at the end of a long stone pier, where the fishing boats came in every \
evening. Its keeper was an old man called Tomas, who had lived there since his wife had died. Each \
morning he climbed the hundred and twelve steps to clean the lamp, and each night he lit it before \
the sun went down. The children of the village brought him bread and apples, and in return he told \
them stories of the sea."""
REPEAT = "Repeat the following text word for word.\n\n%s\n\n%s" % (TEXT, TEXT[:60])
TOKENS = 100


class Speculation(TestCase):
    def setUp(self):
        super().setUp()
        self.artifact = compiled(model("smollm2-135m"))

    def prompts(self):
        given = [prompt["ids"] for prompt in reference("smollm2-135m")["prompts"]]
        texts = [REPEAT, "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n",
                 "1, 2, 3, 4, 5, 6, 7, 8,"]
        for text in texts:
            result = succeed(LLMC_RUN, self.artifact, "--tokenize", "-p", text)
            given.append(result.json["ids"])
        return given[-6:]

    def drafted(self, prompt, *arguments):
        return generate(self.artifact, prompt, TOKENS, "--ignore-end", "--draft", "ngram",
                        *arguments)

    def test_greedy(self):
        accepted = 0
        for number, prompt in enumerate(self.prompts()):
            plain = generate(self.artifact, prompt, TOKENS, "--ignore-end")
            self.assertEqual(plain["drafts"]["verify_steps"], 0)
            for most in range(1, 9):
                with self.subTest(prompt=number, most=most):
                    result = self.drafted(prompt, "--draft-always", "--draft-max", most)
                    self.assertEqual(result["tokens"], plain["tokens"])
                    drafts = result["drafts"]
                    self.assertLessEqual(drafts["proposed"], most * drafts["verify_steps"])
                    self.assertEqual(drafts["steps"] + drafts["accepted"], TOKENS - 1)
                    accepted += drafts["accepted"]
            with self.subTest(prompt=number, most="adaptive"):
                self.assertEqual(self.drafted(prompt)["tokens"], plain["tokens"])
        self.assertGreater(accepted, 0)

    def test_threads(self):
        prompt = self.prompts()[3]
        expected = self.drafted(prompt, "--draft-always", "--threads", "1")["tokens"]
        self.assertEqual(self.drafted(prompt, "--draft-always", "--threads", "3")["tokens"],
                         expected)

    def test_temperature(self):
        """The same seed gives the same tokens with drafts and without."""
        prompt = self.prompts()[3]
        sampling = ("--ignore-end", "--top-p", "0.9", "--repeat-penalty", "1.1", "--seed", "5")
        command = (LLMC_RUN, self.artifact, "--tokens", ids(prompt), "-n", TOKENS, "--json",
                   "--temp", "0.8", *sampling)
        plain = succeed(*command).json
        drafted = succeed(*command, "--draft", "ngram", "--draft-always").json
        self.assertEqual(drafted["tokens"], plain["tokens"])
        self.assertGreater(drafted["drafts"]["proposed"], drafted["drafts"]["accepted"])

    def test_repeated_text(self):
        result = self.drafted(self.prompts()[3])
        drafts = result["drafts"]
        self.assertGreater(drafts["accepted"], 0.9 * drafts["proposed"])
        self.assertLess(drafts["steps"], TOKENS / 3)

    def test_given_text(self):
        """300 words that are to be repeated, or edited: a step yields two tokens and more."""
        text = (DATA / "text/repeat.txt").read_text().strip()
        edited = text.replace("Tomas", "Marco").replace("lamp", "lantern")
        # The model goes on with what has been begun.
        for task, answer, steps in (("Repeat the following text word for word.", text, 1 / 3),
                                    ("Replace Tomas by Marco, and lamp by lantern.", edited, 1 / 2)):
            with self.subTest(task=task):
                begun = " ".join(answer.split()[:60])
                prompt = succeed(LLMC_RUN, self.artifact, "--tokenize", "-p",
                                 "%s\n\n%s\n\n%s" % (task, text, begun)).json["ids"]
                count = 240
                plain = generate(self.artifact, prompt, count, "--ignore-end")
                for most in (8, 15):
                    result = generate(self.artifact, prompt, count, "--ignore-end", "--draft",
                                      "ngram", "--draft-max", most)
                    self.assertEqual(result["tokens"], plain["tokens"])
                    drafts = result["drafts"]
                    self.assertEqual(drafts["steps"] + drafts["accepted"], count - 1)
                    self.assertLess(drafts["steps"], count * steps)
                    # Most of what is verified is right.
                    self.assertGreater(drafts["accepted"], 0.7 * drafts["proposed"])

    def test_useless_drafts(self):
        """Where the text does not repeat itself, steps stay plain: a drafted token costs less than a
        tenth of a step, so that wasting a third of a token per step would cost 3 %."""
        count = 200
        for seed in (1, 2):
            result = succeed(LLMC_RUN, self.artifact, "-p", "The history of the city begins", "-n",
                             count, "--ignore-end", "--temp", "1", "--seed", seed, "--draft",
                             "ngram", "--json").json
            drafts = result["drafts"]
            self.assertEqual(drafts["steps"] + drafts["accepted"], count - 1)
            self.assertLess(drafts["proposed"] - drafts["accepted"], drafts["steps"] / 3)

    def test_end_token_in_a_draft(self):
        """The model ends at the same place; nothing that follows leaks."""
        command = (LLMC_RUN, self.artifact, "--chat", "-p", "Say yes, then say yes again.",
                   "-n", TOKENS, "--json")
        plain = succeed(*command).json
        drafted = succeed(*command, "--draft", "ngram", "--draft-always").json
        for key in ("text", "tokens", "finish_reason", "usage"):
            self.assertEqual(drafted[key], plain[key])

    def test_refusals(self):
        for arguments in (["--draft-max", "4"], ["--draft", "oracle"],
                          ["--draft", "ngram", "--draft-max", "0"]):
            result = run(LLMC_RUN, self.artifact, "-p", "x", *arguments)
            self.assertRefused(result, "--draft", program="llmc-run: ")


if __name__ == "__main__":
    unittest.main()
