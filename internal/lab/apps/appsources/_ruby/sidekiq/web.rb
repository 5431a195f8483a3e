# The web side of Sidekiq: it enqueues reports.
require_relative 'jobs'

Meter.run(4) do
  Meter.measure('enqueue') do
    Report.perform_async("report #{rand(1000)}", Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond))
  end
end
