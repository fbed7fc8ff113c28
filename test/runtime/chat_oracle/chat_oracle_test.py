"""The template engine beside Jinja: the same text to the byte, and an error wherever Jinja has one.

    chat_oracle_test.py RENDERER      (built from test/runtime/chat_render.cpp)
"""

import glob
import os
import struct
import sys
import unittest
import warnings

try:
    import environment
except ImportError as error:
    print(f"SKIPPED: {error} (package python3-jinja2)", file=sys.stderr)
    sys.exit(1 if os.environ.get("LOCKSTEP_NO_SKIPS") else 77)

import expressions
import messages

SOURCE = os.environ.get("LOCKSTEP_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3))
TEMPLATES = os.path.join(SOURCE, "test", "runtime", "chat_templates")
SHARED = os.environ.get("LOCKSTEP_SHARED", os.path.join(SOURCE, "..", "shared"))
DATE = "2024-07-26"
LISTS = 120  # message lists for each template
RANDOM_EXPRESSIONS = 4000

# Refused on purpose: what they write in Jinja is an address, or is too odd to be worth having.
REFUSED = {
    "{{ d.items }}", "{{ s.upper }}", "{{ n|items }}", "{{ l[0, 1] }}", '{{ "ǅabc"|upper }}',
}


def chat_template_of(path):
    """The chat template in a GGUF file, or None."""
    with open(path, "rb") as file:
        data = file.read()
    key = b"tokenizer.chat_template"
    at = data.find(struct.pack("<Q", len(key)) + key + struct.pack("<I", 8))
    if at < 0:
        return None
    at += 8 + len(key) + 4
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8:at + 8 + length].decode("utf-8")


class Oracle(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # Python itself warns of some of the code that Jinja makes of odd templates.
        warnings.simplefilter("ignore")
        cls.renderer = environment.Renderer(sys.argv[1])

    @classmethod
    def tearDownClass(cls):
        cls.renderer.close()

    def compare(self, template, variables, date=None):
        """True if both wrote the same text, False if both refused."""
        expected = environment.expected(template, variables, date)
        got = self.renderer.render(template, variables, date)
        where = f"{template[:300]!r} with {variables!r}"
        if isinstance(expected, Exception):
            self.assertIn("error", got, f"Jinja raises {expected!r} for {where}")
            return False
        self.assertEqual(got.get("text", got), expected, where)
        return True

    def compare_with_lists(self, template, name):
        maker = messages.Maker(name)
        rendered = 0
        for i in range(LISTS):
            rendered += self.compare(template, maker.variables(1 + i % 6), DATE if i % 4 else None)
        self.assertGreater(rendered, 0, f"{name} refused every list")

    def test_chat_templates(self):
        paths = sorted(glob.glob(os.path.join(TEMPLATES, "*.jinja")))
        self.assertGreaterEqual(len(paths), 25)
        for path in paths:
            with open(path, encoding="utf-8") as file, self.subTest(os.path.basename(path)):
                self.compare_with_lists(file.read(), os.path.basename(path))

    def test_templates_of_public_vocabularies(self):
        paths = sorted(glob.glob(os.path.join(SHARED, "tokenizers", "*.gguf")))
        if not paths:
            print("SKIPPED: no tokenizers in the shared data set", file=sys.stderr)
            return
        found = 0
        for path in paths:
            template = chat_template_of(path)
            if template is not None:
                found += 1
                with self.subTest(os.path.basename(path)):
                    self.compare_with_lists(template, os.path.basename(path))
        self.assertGreater(found, 0)

    def test_expressions(self):
        cases = ["{{ " + line + " }}" for line in expressions.EXPRESSIONS]
        for template in cases + expressions.TEMPLATES:
            with self.subTest(template):
                if template in REFUSED:
                    answer = self.renderer.render(template, expressions.VARIABLES, DATE)
                    self.assertIn("error", answer)
                else:
                    self.compare(template, expressions.VARIABLES, DATE)

    def test_dates(self):
        for template in expressions.TEMPLATES:
            if "strftime" in template:
                for date in expressions.DATES:
                    with self.subTest(template, date=date):
                        self.compare(template, expressions.VARIABLES, date)

    def test_random_expressions(self):
        maker = expressions.Maker(1)
        same = 0
        for _ in range(RANDOM_EXPRESSIONS):
            template = maker.template()
            with self.subTest(template):
                answer = self.renderer.render(template, expressions.VARIABLES)
                # By name, or where Jinja folds a slice of a constant that Python cannot slice.
                refusal = answer.get("error", "")
                if refusal.endswith("which is not supported") or ": a slice of " in refusal:
                    continue
                same += self.compare(template, expressions.VARIABLES)
        self.assertGreater(same, RANDOM_EXPRESSIONS // 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
