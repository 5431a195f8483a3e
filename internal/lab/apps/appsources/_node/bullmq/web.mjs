// The web side of BullMQ: it adds orders, and waits until they are done.
import { Queue, QueueEvents } from "bullmq";
import { measure, run, where } from "./meter.mjs";

const queue = new Queue("orders", { connection: where() });
const events = new QueueEvents("orders", { connection: where() });
for (const part of [queue, events]) part.on("error", (e) => console.error(e.message));
await events.waitUntilReady();

const any = (n) => Math.floor(Math.random() * n);

run(5, () => measure("job", async () => {
  const lines = Array.from({ length: 5 }, () => [any(1000), 1 + any(5)]);
  const job = await measure("enqueue", () => queue.add("order", { lines }));
  if (!job) throw new Error("not added");
  const result = await job.waitUntilFinished(events, 10_000);
  if (typeof result.cents !== "number") throw new Error("no result");
}));
