// The worker of BullMQ: it computes what an order costs.
import { Worker } from "bullmq";
import { where } from "./meter.mjs";

const worker = new Worker("orders", async (job) => {
  const cents = job.data.lines.reduce((sum, [price, count]) => sum + price * count, 0);
  return { cents };
}, { connection: where(), concurrency: 5, removeOnComplete: { count: 100 } });
worker.on("error", (e) => console.error(e.message));

process.on("SIGTERM", async () => { await worker.close(); process.exit(0); });
