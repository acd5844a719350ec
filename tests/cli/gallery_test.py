"""scripts/gallery makes the pages that docs/gallery names, small enough to be mailed."""
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import harness

README = pathlib.Path("docs/gallery/README.md")


class Gallery(harness.CliTest):
    def test_makes_what_the_index_names(self):
        subprocess.run(["scripts/gallery", self.folder], check=True, capture_output=True, env={**os.environ, "TUTTI": os.path.abspath(harness.TUTTI)})
        named = set(re.findall(r"\b[\w-]+\.(?:html|svg)\b", README.read_text())) - {"FILE.svg"}
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(named))
        pages = sorted(name for name in named if name.endswith(".html"))
        self.assertEqual(len(pages), 8)
        for name in pages:
            self.assertTrue(harness.page_data(self.path(name))["networks"], name)
            self.assertLess(os.path.getsize(self.path(name)), 400_000, name)
        for name in named - set(pages):
            xml.etree.ElementTree.parse(self.path(name))


if __name__ == "__main__":
    harness.main()
