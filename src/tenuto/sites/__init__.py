"""What is known of each family of chat pages, kept as data.

One profile a family: selectors with fall-backs, ranked evidence and the patterns
of its errors. A profile describes a page; it holds no program and no credentials.
`load` reads them, those of the user in place of ours; `compiled` is what an extension is given.
"""

from tenuto.sites.drift import CRITICAL, Drift, drifted, sentence
from tenuto.sites.profiles import Compiled, compiled, for_url, load, read

__all__ = ["CRITICAL", "Compiled", "Drift", "compiled", "drifted", "for_url", "load", "read", "sentence"]
