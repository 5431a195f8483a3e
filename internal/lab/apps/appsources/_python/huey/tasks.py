"""The tasks of a site, for huey."""

import os

from huey import RedisHuey

huey = RedisHuey("site", url=os.environ["REDIS_URL"])


@huey.task()
def thumbnail(picture, width):
    return "%s@%d" % (picture, width)
