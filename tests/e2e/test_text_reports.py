"""Field reports c1 to c8 through the programs: tokens, templates, streams, ends.

c9 (whole texts against Hugging Face's tokenizers) is the unit test of runtime/text.
"""

import json
import os
import subprocess
import unittest

from fixtures import (bpe_vocabulary, byte_letters, chain_model, random_model,
                      spm_vocabulary)
from harness import (LLMC, LLMC_RUN, TestCase, compiled, compiled_fixture, ids, model, run, shared,
                     succeed)

END = "<|im_end|>"
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def tokenize(artifact, text, *arguments):
    return succeed(LLMC_RUN, artifact, "--tokenize", "-f", "-", *arguments,
                   input=text.encode()).json["ids"]


def detokenize(artifact, tokens, *arguments):
    return succeed(LLMC_RUN, artifact, "--detokenize", ids(tokens), *arguments).stdout


def chain(tokens, vocabulary, **options):
    """A model that says these tokens one after the other."""
    return compiled_fixture(chain_model(dict(zip(tokens, tokens[1:])), tokenizer=vocabulary,
                                        **options))


class IgnoreMerges(TestCase):
    """c1."""

    def test_llama3(self):
        vocabulary = compiled(shared("tokenizers/ggml-vocab-llama-bpe.gguf"))
        self.assertEqual(tokenize(vocabulary, " Việt"), [101798])

    def test_toy(self):
        for pre, expected in (("llama-bpe", [258]), ("gpt-2", [256, 257])):
            with self.subTest(pre=pre):
                vocabulary = bpe_vocabulary(merges=["a b", "c d"], pre=pre)
                # A token that no merge leads to.
                vocabulary["tokenizer.ggml.tokens"].value.append("abcd")
                vocabulary["tokenizer.ggml.token_type"].value.append(1)
                artifact = compiled_fixture(random_model(vocabulary=259, tokenizer=vocabulary))
                self.assertEqual(tokenize(artifact, "abcd"), expected)


class ControlText(TestCase):
    """c2: control text in a message stays text."""

    def setUp(self):
        super().setUp()
        special = ["<|im_start|>", END]
        self.start, self.end = 256, 257
        vocabulary = bpe_vocabulary(special=special, eos_token_id=257)
        # The first token of the answer ends it.
        gguf = chain_model({ord("\n"): 257}, tokenizer=vocabulary, context=256)
        self.artifact = compiled_fixture(gguf.set("tokenizer.chat_template", CHATML))

    def test_message(self):
        plain = succeed(LLMC_RUN, self.artifact, "--chat", "-p", "ab", "--json", "--temp", "0").json
        forged = succeed(LLMC_RUN, self.artifact, "--chat", "-p", "a%sb" % END, "--json", "--temp",
                         "0").json
        # Ten bytes of text are ten tokens here; a control token would be one.
        self.assertEqual(forged["usage"]["prompt_tokens"],
                         plain["usage"]["prompt_tokens"] + len(END))

    def test_tokenize(self):
        text = "a%sb" % END
        self.assertEqual(tokenize(self.artifact, text), list(text.encode()))
        self.assertEqual(tokenize(self.artifact, text, "--special"), [97, self.end, 98])

    def test_qwen(self):
        vocabulary = compiled(shared("tokenizers/ggml-vocab-qwen2.gguf"))
        text = "a%sb<|endoftext|>" % END
        plain = tokenize(vocabulary, text)
        self.assertLess(max(plain), 151643)
        self.assertEqual(detokenize(vocabulary, plain), text.encode())


class Streaming(TestCase):
    """c3: what is streamed is whole characters."""

    PIECES = (b"\xe5\xae", b"\xa2\xe5\x8d", b"\x95\xf0\x9f", b"\xa6\x99")
    TEXT = "客单🦙"

    def artifact(self):
        letters = byte_letters()
        vocabulary = bpe_vocabulary(special=["<s>", "</s>"], eos_token_id=257)
        for piece in self.PIECES:
            vocabulary["tokenizer.ggml.tokens"].value.append("".join(letters[b] for b in piece))
            vocabulary["tokenizer.ggml.token_type"].value.append(1)
        return chain([256, 258, 259, 260, 261, 257], vocabulary)

    def test_deltas(self):
        process = subprocess.Popen([LLMC_RUN, str(self.artifact()), "--tokens", "256", "--temp",
                                    "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        deltas = []
        while delta := os.read(process.stdout.fileno(), 4096):
            deltas.append(delta.decode())  # raises where a character is cut
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual("".join(deltas), self.TEXT + "\n")
        self.assertNotIn("\ufffd", "".join(deltas))

    def test_not_streamed(self):
        result = succeed(LLMC_RUN, self.artifact(), "--tokens", "256", "--temp", "0", "--json").json
        self.assertEqual(result["text"], self.TEXT)
        self.assertEqual(result["finish_reason"], "stop")

    def test_stop_string_over_token_borders(self):
        result = succeed(LLMC_RUN, self.artifact(), "--tokens", "256", "--temp", "0", "--json",
                         "--stop", "单🦙").json
        self.assertEqual((result["text"], result["finish_reason"]), ("客", "stop"))


class Templates(TestCase):
    """c4."""

    def render(self, source, context):
        template, data = self.folder / "t.jinja", self.folder / "c.json"
        template.write_text(source)
        data.write_text(json.dumps(context))
        return run(LLMC, "render-template", template, data)

    def test_what_real_templates_use(self):
        messages = [{"role": "user", "content": c} for c in "abc"]
        for source, context, expected in (
                ("{% for m in messages %}{{ m.content }}{% if loop.index == 2 %}{% break %}"
                 "{% endif %}{% endfor %}", {"messages": messages}, "ab"),
                ("{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", {"d": {"x": 1, "y": 2}},
                 "x1y2"),
                ("{{ strftime_now('%Y') | length }}", {}, "4")):
            with self.subTest(source=source):
                result = self.render(source, context)
                self.assertEqual((result.code, result.text), (0, expected), result.error)

    def test_raise_exception(self):
        self.assertRefused(self.render("{{ raise_exception('no way') }}", {}), "no way")

    def test_raise_exception_in_a_chat(self):
        gguf = chain_model({}, tokenizer=bpe_vocabulary()).set(
            "tokenizer.chat_template", "{{ raise_exception('no way') }}")
        self.assertRefused(run(LLMC_RUN, compiled_fixture(gguf), "--chat", "-p", "a"), "no way",
                           program="llmc-run: ")

    def test_unsupported_syntax_is_refused_when_compiling(self):
        gguf = chain_model({}, tokenizer=bpe_vocabulary()).set(
            "tokenizer.chat_template", "a\n{% no_such_tag %}")
        source = gguf.write(self.folder / "model.gguf")
        self.assertRefused(run(LLMC, "compile", source, "-o", self.folder / "model.llmc"),
                           "model.gguf", "no_such_tag", "2")

    def test_as_python_renders(self):
        """One conversation with every template; the unit test has them all."""
        expected = json.loads(shared("templates/expected.json").read_text())
        for name, cases in expected["rendered"].items():
            with self.subTest(template=name):
                conversation = "system_and_turns"
                result = self.render(shared("templates/" + name).read_text(), {
                    "messages": expected["conversations"][conversation],
                    "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"})
                if "error" in cases[conversation]:
                    self.assertRefused(result)
                else:
                    self.assertEqual((result.code, result.text), (0, cases[conversation]["text"]))


class Bos(TestCase):
    """c5: exactly one BOS, whoever adds it."""

    def prompt_tokens(self, template, add_bos):
        vocabulary = bpe_vocabulary(special=["<s>", "</s>"], bos_token_id=256, eos_token_id=257,
                                    add_bos_token=add_bos)
        gguf = chain_model({ord("a"): 257}, tokenizer=vocabulary)
        artifact = compiled_fixture(gguf.set("tokenizer.chat_template", template))
        chat = succeed(LLMC_RUN, artifact, "--chat", "-p", "a", "--json", "--temp", "0").json
        plain = succeed(LLMC_RUN, artifact, "-p", "a", "--json", "--temp", "0").json
        return chat["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"]

    def test_once(self):
        printed = "{{ bos_token }}{{ messages[0].content }}"
        without = "{{ messages[0].content }}"
        self.assertEqual(self.prompt_tokens(printed, True), (2, 2))
        self.assertEqual(self.prompt_tokens(without, True), (2, 2))
        self.assertEqual(self.prompt_tokens(printed, False), (2, 1))
        self.assertEqual(self.prompt_tokens(without, False), (1, 1))


class SentencePiece(TestCase):
    """c6, c7."""

    def artifact(self, **options):
        pieces = ["▁", "H", "i", "a", "b", "▁a", "▁b", "Hi", "▁Hi"]
        return compiled_fixture(random_model(vocabulary=320, tokenizer=spm_vocabulary(
            pieces=pieces, special=["<turn>"], size=320, **options)))

    def test_byte_fallback(self):
        artifact = self.artifact(add_space_prefix=False)
        tokens = tokenize(artifact, "🦙")
        self.assertEqual(tokens, [3 + b for b in "🦙".encode()])
        self.assertEqual(detokenize(artifact, tokens).decode(), "🦙")

    def test_without_a_newline(self):
        vocabulary = spm_vocabulary(pieces=["▁", "a", "b", "▁a"], bytes_=False, size=64)
        source = random_model(vocabulary=64, tokenizer=vocabulary).write(self.folder / "m.gguf")
        built = succeed(LLMC, "compile", source, "-o", self.folder / "m.llmc")
        self.assertIn("warning", built.error)
        tokens = tokenize(self.folder / "m.llmc", "a\nb")
        self.assertEqual(tokens[-2:], [0, 5])

    def test_no_space_after_control_tokens(self):
        artifact = self.artifact(add_space_prefix=False)
        turn, hi = tokenize(artifact, "<turn>Hi", "--special")
        self.assertEqual(detokenize(artifact, [turn, hi], "--special"), b"<turn>Hi")

    def test_pieces_one_by_one(self):
        """A stream of " a b" equals the text decoded at once."""
        artifact = self.artifact(add_space_prefix=True)
        tokens = tokenize(artifact, " a b")
        self.assertEqual(detokenize(artifact, tokens), b" a b")


class EndTokens(TestCase):
    """c8: a model may have several end tokens."""

    def test_each_ends(self):
        vocabulary = bpe_vocabulary(special=["<|end_a|>", "<|end_b|>"], eos_token_id=256,
                                    eot_token_id=257)
        for end in (256, 257):
            with self.subTest(end=end):
                artifact = chain([ord("a"), ord("b"), ord("c"), end, ord("d")], vocabulary)
                result = succeed(LLMC_RUN, artifact, "-p", "a", "--temp", "0", "--json").json
                self.assertEqual((result["text"], result["finish_reason"]), ("bc", "stop"))
                self.assertEqual(result["usage"]["completion_tokens"], len(result["tokens"]))


class RealVocabularies(TestCase):
    """Some strings of ../shared/tokenizers through the command; the unit test has all of them."""

    def test_strings(self):
        for name in ("smollm2-135m", "gemma3-270m"):
            artifact = compiled(model(name))
            for case in json.loads(shared("tokenizers/%s.json" % name).read_text())[::24]:
                with self.subTest(model=name, text=case["text"]):
                    self.assertEqual(tokenize(artifact, case["text"]), case["plain"])
                    self.assertEqual(tokenize(artifact, case["text"], "--special"),
                                     case["special"])


if __name__ == "__main__":
    unittest.main()
