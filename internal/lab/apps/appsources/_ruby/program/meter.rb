# Counts what an application does, and reports it as lines of JSON once per second (docs/apps.md).
require 'json'

module Meter
  SCHEMA = 'slowpath.app/v1'.freeze
  KEPT_BITS = 8
  ERROR_LIMIT = 200

  @lock = Mutex.new
  @seconds = {}

  class << self
    def url
      ENV.fetch('REDIS_URL')
    end

    def add(operation, took, error = nil)
      shift = [took.bit_length - KEPT_BITS, 0].max
      value = took >> shift << shift
      @lock.synchronize do
        second = Time.now.to_i
        line = @seconds[[second, operation]] ||= {
          schema: SCHEMA, operation: operation, unix_second: second, done: 0, errors: 0, sum_ns: 0, max_ns: 0,
          histogram: Hash.new(0)
        }
        line[:done] += 1
        line[:sum_ns] += took
        line[:max_ns] = [line[:max_ns], took].max
        line[:histogram][value] += 1
        if error
          line[:errors] += 1
          line[:last_error] = "#{error.class}: #{error.message}"[0, ERROR_LIMIT]
        end
      end
    end

    # measure counts what the block does, also if it fails.
    def measure(operation)
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      error = nil
      begin
        yield
      rescue StandardError => e
        error = e
      end
      add(operation, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start, error)
    end

    def write(before)
      over = @lock.synchronize do
        old = @seconds.select { |k, _| k[0] < before }
        old.each_key { |k| @seconds.delete(k) }
        old.values
      end
      over.each do |line|
        line[:histogram] = line[:histogram].sort
        $stdout.write(JSON.generate(line) + "\n")
      end
      $stdout.flush
    end

    # report writes the lines in a thread of its own.
    def report
      Thread.new do
        loop do
          sleep 1
          write(Time.now.to_i)
        end
      end
    end

    # run calls the block at the application's rate, in some threads with exponential gaps, until SIGTERM.
    def run(callers, &block)
      rate = Float(ENV.fetch('APP_RATE'))
      done = Queue.new
      %w[TERM INT].each { |s| trap(s) { done.close } }
      callers.times do
        Thread.new do
          loop do
            sleep(-Math.log(1 - rand) * callers / rate)
            block.call
          end
        end
      end
      report
      done.pop
      write(Time.now.to_i + 1)
      exit! 0 # a caller may wait for a reply that never comes
    end
  end
end
