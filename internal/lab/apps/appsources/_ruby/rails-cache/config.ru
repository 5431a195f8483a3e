# A site whose pages are put together from the cache of Rails (ActiveSupport), in puma.
require 'active_support'
require 'active_support/cache'
require 'active_support/cache/redis_cache_store'

CACHE = ActiveSupport::Cache::RedisCacheStore.new(
  url: ENV.fetch('REDIS_URL'), pool_size: 5, expires_in: 300,
  error_handler: ->(method:, returning:, exception:) { raise exception }
)

run(lambda do |_env|
  names = Array.new(5) { "product/#{rand(1000)}" }
  parts = CACHE.fetch_multi(*names) { |name| "<p>#{name} #{'x' * 300}</p>" }
  menu = CACHE.fetch('menu', expires_in: 60) { '<ul><li>books</li><li>pens</li></ul>' }
  views = CACHE.increment('views', 1)
  [200, { 'Content-Type' => 'text/html' }, ["#{menu}#{parts.values.join}#{views}"]]
end)
