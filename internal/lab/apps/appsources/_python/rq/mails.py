"""The job of RQ: it renders a mail."""


def render(name, items):
    return "Dear %s, you bought:\n%s" % (name, "\n".join("- %s" % i for i in items))
