# Threads of which it is known what they run. It writes their names and numbers, and ends when its input does.
import asyncio
import os
import sys
import threading
import time


def spin_within(numbers):
    while True:
        numbers[0] += 1  # spins


def spin():
    def nested():
        spin_within([0])  # calls spin_within

    nested()  # calls nested


class Shop:
    def wait(self):
        time.sleep(3600)  # sleeps


async def parse(text):
    time.sleep(3600)  # blocks the loop
    return text


async def handler():
    await asyncio.sleep(0)
    return await parse("größe")  # awaits parse


async def gather():
    await asyncio.gather(handler())


def loop():
    asyncio.run(gather())


def générer():
    yield next(Shop().wait() for _ in [0])  # in a generator


def deep(n):
    if n == 0:
        time.sleep(3600)
    deep(n - 1)  # recurses


def churn_one():
    return 1


def churn_other():
    return churn_one() + sum(churn_one() for _ in range(3))


def churn():
    while True:
        churn_one()  # churns
        churn_other()  # churns


def start(name, run):
    began = threading.Event()

    def first():
        print(name, threading.get_native_id(), flush=True)
        began.set()
        run()

    threading.Thread(target=first, daemon=True).start()
    began.wait()


start("spin", spin)
start("wait", Shop().wait)
start("loop", loop)
start("generator", lambda: list(générer()))
start("deep", lambda: deep(100))
if "churn" in sys.argv:
    start("churn", churn)


def main():
    print("main", threading.get_native_id(), flush=True)
    os.read(0, 1)  # reads
    os._exit(0)


main()
