"""`rq worker`, with the server in the environment and not on the command line, where all users see the password."""

import os
import sys

from rq.cli import main

os.environ["RQ_REDIS_URL"] = os.environ["REDIS_URL"]
sys.argv = ["rq", "worker", "--quiet", "mails"]
main()
