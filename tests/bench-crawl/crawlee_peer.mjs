// crawlee on the benchmark's web: the same paths of the same sites. It has no option to obey robots.txt for single requests
// without its enqueueLinks, so it requests every given URL, robots.txt first.
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns';
import { HttpCrawler, Configuration, log, LogLevel } from '@crawlee/http';

const [folder, mode, concurrency] = process.argv.slice(2);
const addresses = new Map(readFileSync(`${folder}/hosts`, 'utf8').trim().split('\n').map((line) => line.split(' ').reverse()));
const paths = readFileSync(`${folder}/paths.txt`, 'utf8').trim().split('\n');
log.setLevel(LogLevel.ERROR);

const dnsLookup = (name, options, done) => {
    const socket = addresses.get(name);
    if (!socket) return lookup(name, options, done);
    const address = socket.split(':')[0];
    return options?.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4);
};

const crawler = new HttpCrawler({
    maxConcurrency: Number(concurrency),
    minConcurrency: Math.min(Number(concurrency), 64),
    maxRequestRetries: 0,
    useSessionPool: false,
    requestHandlerTimeoutSecs: 20,
    navigationTimeoutSecs: 20,
    sameDomainDelaySecs: mode === 'polite' ? 1 : 0,
    additionalMimeTypes: ['application/json', 'text/plain', '*/*'],
    ignoreHttpErrorStatusCodes: Array.from({ length: 200 }, (_, index) => 400 + index),
    preNavigationHooks: [(_context, got) => {
        Object.assign(got, { dnsLookup, https: { rejectUnauthorized: false }, followRedirect: false,
            headers: { 'user-agent': 'peer/1.0 (+https://crawler.example/)' }, useHeaderGenerator: false });
    }],
    requestHandler: async () => {},
    failedRequestHandler: async () => {},
}, new Configuration({ persistStorage: false }));

const requests = [];
for (const [name, socket] of addresses) {
    for (const path of paths) requests.push({ url: `https://${name}:${socket.split(':')[1]}${path}` });
}
await crawler.run(requests);
