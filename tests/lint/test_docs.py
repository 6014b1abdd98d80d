"""Pages: generated ones are up to date, links lead somewhere, commands exist."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import repository

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Docs(unittest.TestCase):
    def pages(self):
        return repository.files(".md")

    def test_generated_pages_are_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([str(repository.ROOT / "tools/generate-docs.sh"), folder], check=True)
            made = sorted(p.relative_to(folder) for p in pathlib.Path(folder).rglob("*.md"))
            self.assertTrue(made)
            for page in made:
                with self.subTest(page=str(page)):
                    ours = repository.ROOT / "docs" / page
                    self.assertTrue(ours.exists(), "run tools/generate-docs.sh")
                    self.assertEqual((pathlib.Path(folder) / page).read_text(), ours.read_text(),
                                     "run tools/generate-docs.sh")

    def test_every_pass_group_has_a_page(self):
        groups = {p.parts[1] for p in repository.files("Passes.td") if p.parts[0] == "passes"}
        pages = {p.stem for p in self.pages() if p.parts[:2] == ("docs", "passes")}
        self.assertEqual(groups, pages)

    def test_links(self):
        for page in self.pages():
            folder = (repository.ROOT / page).parent
            for target in LINK.findall(repository.read(page)):
                if "://" in target or target.startswith("mailto:"):
                    continue
                with self.subTest(page=str(page), link=target):
                    self.assertTrue((folder / target).exists())

    def test_every_page_is_reachable(self):
        """From README.md, over links."""
        seen, todo = set(), [pathlib.Path("README.md")]
        while todo:
            page = todo.pop()
            if page in seen or not (repository.ROOT / page).exists():
                continue
            seen.add(page)
            for target in LINK.findall(repository.read(page)):
                if target.endswith(".md") and "://" not in target:
                    full = (repository.ROOT / page).parent / target
                    todo.append(full.resolve().relative_to(repository.ROOT))
        lost = [str(p) for p in self.pages() if pathlib.Path(p) not in seen]
        self.assertEqual(lost, [])

    def test_named_files_exist(self):
        """`compiler/ir/Llm.cpp` in a page is a file or a folder of the tree."""
        name = re.compile(r"`((?:compiler|docs|frontends|passes|runtime|tests|tools)/[\w./-]*)`")
        for page in self.pages():
            for path in name.findall(repository.read(page)):
                with self.subTest(page=str(page), path=path):
                    self.assertTrue((repository.ROOT / path).exists())


if __name__ == "__main__":
    unittest.main()
