"""What is known of each family of chat pages, kept as data.

One profile a family: selectors with fall-backs, ranked evidence and the patterns
of its errors. A profile describes a page; it holds no program and no credentials.
"""
