<?php
// A site in PHP whose sessions are in the server, by the session handler of phpredis. Each page view is a request of
// its own: PHP opens a connection for it and closes it at the end, unless connections are persistent.
declare(strict_types=1);

$server = parse_url(getenv('REDIS_URL'));
$path = "tcp://{$server['host']}:{$server['port']}?persistent=1";
if (!empty($server['pass'])) {
    $path .= '&auth=' . rawurlencode(rawurldecode($server['pass']));
}
if (getenv('APP_PROXY') === 'twemproxy') {
    ini_set('redis.pconnect.echo_check_liveness', '0'); // it knows no ECHO
}
ini_set('session.save_handler', 'redis');
ini_set('session.save_path', $path);
session_start();
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
$_SESSION['basket'][random_int(0, 9)] = random_int(1, 5);
echo 'seen ', $_SESSION['seen'];
