"""The tasks of a shop, for Celery. Broker and result backend are the same server, as most people have it."""

import hashlib
import os

from celery import Celery

url = os.environ["REDIS_URL"]
if url.startswith("rediss:"):
    url += "?ssl_cert_reqs=CERT_REQUIRED&ssl_ca_certs=" + os.environ["SSL_CERT_FILE"]

app = Celery("shop", broker=url, backend=url)
app.conf.update(broker_connection_retry_on_startup=True, result_expires=600)


@app.task
def invoice(order, lines):
    digest = hashlib.sha256()
    for _ in range(200):
        digest.update(repr(lines).encode())
    return {"order": order, "digest": digest.hexdigest()}
