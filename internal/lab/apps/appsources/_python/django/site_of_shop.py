"""A site in Django: sessions and the cache are in the server. Its pages are those of a small shop."""

import os
import random

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

# twemproxy knows neither HELLO nor CLIENT
OPTIONS = {"protocol": 2, "lib_name": None, "lib_version": None} if os.environ["APP_PROXY"] == "twemproxy" else {}

settings.configure(
    SECRET_KEY="of the lab", ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, USE_TZ=True,
    CACHES={"default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": os.environ["REDIS_URL"],
        "OPTIONS": OPTIONS,
    }},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
)
django.setup()

from django.core.cache import cache  # noqa: E402  needs the settings


def product(number):
    return {"number": number, "name": "product %d" % number, "text": "x" * 500}


def page(request):
    request.session["seen"] = request.session.get("seen", 0) + 1
    numbers = [random.randrange(1000) for _ in range(5)]
    found = cache.get_many(["product:%d" % n for n in numbers])
    for n in numbers:
        if "product:%d" % n not in found:
            cache.set("product:%d" % n, product(n), timeout=300)
    menu = cache.get_or_set("menu", lambda: ["books", "pens"], timeout=60)
    cache.get_or_set("views", 0, timeout=None)
    cache.incr("views")
    return HttpResponse("%d %s" % (request.session["seen"], menu))


urlpatterns = [path("", page)]
application = get_wsgi_application()
