# Runs install and test of a formula as Homebrew does, in the unpacked source: formula.rb FORMULA PREFIX. With GOOS set,
# only what the Go tool is told is run, since the program itself would not run here. The formula is evaluated as it is;
# the methods below are those of Homebrew that it uses.
require "fileutils"
require "pathname"

PREFIX = Pathname(ARGV.fetch(1))
FOREIGN = ENV.key?("GOOS")

class Pathname
  def install(files) = FileUtils.mkdir_p(self) && FileUtils.cp(files, self)
end

class Formula
  class << self
    attr_reader :tested

    %i[desc homepage url version sha256 license].each do |name|
      define_method(name) do |value = nil|
        value ? instance_variable_set("@#{name}", value) : instance_variable_get("@#{name}")
      end
    end

    def depends_on(what)
      raise "unknown: #{what}" unless what == { "go" => :build }
    end

    def test(&block) = @tested = block
  end

  def version = self.class.version

  def bin = PREFIX / "bin"

  def man1 = PREFIX / "share/man/man1"

  def std_go_args(ldflags:) = ["-trimpath", "-o=#{bin / "slowpath"}", "-ldflags=#{ldflags}"]

  def system(*command)
    return if FOREIGN && command.first != "go"

    Kernel.system(*command.map(&:to_s)) || raise("failed: #{command.join(" ")}")
  end

  def generate_completions_from_executable(program, *arguments)
    %w[bash zsh fish].each { |shell| system(program, *arguments, shell) }
  end

  def shell_output(command, code = 0)
    text = `#{command}`
    $?.exitstatus == code ? text : raise("#{command}: exit code #{$?.exitstatus}, not #{code}\n#{text}")
  end

  def assert_match(want, text)
    text.include?(want) || raise("#{want} is not in:\n#{text}")
  end
end

load File.expand_path(ARGV.fetch(0))
formula = Slowpath.new
formula.install
formula.instance_eval(&Slowpath.tested) unless FOREIGN
