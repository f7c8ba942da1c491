"""Pages looked at from outside of them: in the accessibility tree of their window, or by their browser's DevTools."""
