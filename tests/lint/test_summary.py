"""The counts that end tools/test.sh."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import repository

sys.path.insert(0, str(repository.ROOT / "tests"))
import summary  # noqa: E402

GTEST = """<testsuites tests="4" failures="1" errors="0"><testsuite name="S">
<testcase name="Good" status="run" result="completed"/>
<testcase name="Bad" status="run" result="completed"><failure message="no"/></testcase>
<testcase name="Skipped" status="run" result="skipped"><skipped message="no data"/></testcase>
<testcase name="DISABLED_X" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""
CTEST = """<testsuite name="c">
<testcase name="binary" status="fail"><failure message="1"/></testcase>
<testcase name="crashed" status="fail"><failure message="SEGFAULT"/></testcase>
<testcase name="capi" status="run"/>
</testsuite>"""
UNITTEST = """FAIL: test_a (m.C.test_a) (path='x')
FAIL: test_a (m.C.test_a) (path='y')
ERROR: test_b (m.C.test_b)
Ran 5 tests in 0.1s

FAILED (failures=2, errors=1, skipped=1)
"""


class Summary(unittest.TestCase):
    def summarize(self, **files):
        """Status and lines for a folder of these files."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name.replace("__", "/").replace("_xml", ".xml").replace(
                    "_log", ".log")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = summary.main(folder)
            return status, out.getvalue().splitlines()

    def test_gtest_and_ctest(self):
        status, lines = self.summarize(gtest__binary_xml=GTEST, ctest_xml=CTEST)
        self.assertEqual(status, 1)
        # The binary's cases stand for it; the one that crashed before its report counts once.
        self.assertEqual(lines[-1], "2 passed, 2 failed, 2 skipped")
        self.assertIn("FAILED binary: Bad", lines)
        self.assertIn("FAILED ctest: crashed", lines)

    def test_crash_after_a_good_report(self):
        good = GTEST.replace('failures="1"', 'failures="0"').replace(
            '<failure message="no"/>', "")
        status, lines = self.summarize(gtest__binary_xml=good, ctest_xml=CTEST)
        self.assertIn("FAILED ctest: binary", lines)
        self.assertEqual(status, 1)

    def test_unittest(self):
        status, lines = self.summarize(e2e_log=UNITTEST)
        self.assertEqual((status, lines[-1]), (1, "2 passed, 2 failed, 1 skipped"))
        self.assertIn("FAILED e2e: test_a (m.C.test_a)", lines)

    def test_unittest_that_died(self):
        status, lines = self.summarize(e2e_log="Fatal Python error\n", checks="pass build\n")
        self.assertEqual((status, lines), (1, ["FAILED e2e: did not finish", "1 passed, 1 failed"]))

    def test_checks(self):
        self.assertEqual(self.summarize(checks="pass a\npass b c\n"), (0, ["2 passed, 0 failed"]))
        self.assertEqual(self.summarize(checks="fail b c\n"),
                         (1, ["FAILED b c", "0 passed, 1 failed"]))

    def test_nothing_ran(self):
        self.assertEqual(self.summarize(), (1, ["0 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main()
