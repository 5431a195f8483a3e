# Threads of which it is known what they run. It writes their names and numbers, and ends when its input does.
$stdout.sync = true

def spin_within(numbers)
  while true
    numbers[0] += 1 # spins
  end
end

def spin
  nested = lambda do
    spin_within([0]) # calls spin_within
  end
  nested.call # calls nested
end

class Shop
  def wait
    sleep 3600 # sleeps
  end

  def größe
    [1].each do |_|
      wait # in a block
    end
  end

  def long(n)
    # More instructions than a table of ranks has without blocks.
    a = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    b = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    c = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    d = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    e = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    f = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    g = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    h = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    i = [n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13, n + 14]
    wait # after many lines
    [a, b, c, d, e, f, g, h, i]
  end
end

def parse(text)
  sleep 3600 # blocks the fiber
  text
end

def fiber
  Fiber.new do
    parse("größe") # in a fiber
  end.resume
end

def deep(n)
  sleep 3600 if n == 0
  deep(n - 1) # recurses
end

def churn_one
  1
end

def churn_other
  churn_one + [1, 2, 3].sum { churn_one }
end

def churn
  while true
    churn_one # churns
    churn_other # churns
  end
end

def start(name)
  began = Queue.new
  Thread.new do
    puts "#{name} #{Thread.current.native_thread_id}"
    began << true
    yield
  end
  began.pop
end

start("spin") { spin }
start("wait") { Shop.new.wait }
start("block") { Shop.new.größe }
start("long") { Shop.new.long(1) }
start("fiber") { fiber }
start("deep") { deep(100) }
start("churn") { churn } if ARGV.include?("churn")

def forked
  fork do
    $stdin.read(1) # in a child
  end
end

puts "child #{forked}" if ARGV.include?("fork")

def main
  puts "main #{Thread.current.native_thread_id}"
  $stdin.read(1) # reads
  exit!(0)
end

main # runs main
