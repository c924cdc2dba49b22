"""What cannot take part here, and why."""


class Missing(Exception):
    """A contender or a case that cannot run; its text is the reason, and what to do about it."""
