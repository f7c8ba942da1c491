"""The local API: verbs over HTTP on a Unix socket, and on a loopback port where one is wanted.

Nothing of the web stack is imported by importing this package or its door; that happens when somebody first knocks.
"""
