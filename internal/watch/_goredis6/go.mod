module goredis6

go 1.26

require github.com/go-redis/redis v6.15.9+incompatible
