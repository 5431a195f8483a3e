<?php
// A site in PHP with the cache of Symfony over Predis. Each page view opens a connection and closes it, as PHP does.
declare(strict_types=1);

require_once 'Symfony/Component/Cache/autoload.php';
require_once 'Predis/Autoloader.php';
Predis\Autoloader::register();

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Contracts\Cache\ItemInterface;

$server = RedisAdapter::createConnection(getenv('REDIS_URL'), ['class' => Predis\Client::class]);
$cache = new RedisAdapter($server, 'shop', 300);
$number = random_int(0, 999);
echo $cache->get("product.$number", function (ItemInterface $item) use ($number): string {
    $item->expiresAfter(120);
    return "<p>product $number " . str_repeat('x', 500) . '</p>';
});
foreach ($cache->getItems(['menu', 'banner', "reviews.$number"]) as $key => $item) {
    if (!$item->isHit()) {
        $cache->save($item->set("<p>$key</p>"));
    }
    echo $item->get();
}
