// boss.js ACTION DSN: what pg-boss does with its own tables. install: makes them; purge: archives finished jobs and deletes
// what was archived, as its maintenance does at its intervals. Prints the seconds of each.
const PgBoss = require('pg-boss')

async function main ([action, connectionString]) {
  // jobs are archived twelve hours after they ended (its default), and deleted from the archive at the next turn
  const boss = new PgBoss({ connectionString, archiveCompletedAfterSeconds: 12 * 3600, deleteAfterSeconds: 1, supervise: false, schedule: false })
  boss.on('error', error => { throw error })
  await boss.start()
  if (action === 'install') await boss.createQueue('mail')
  if (action === 'purge') {
    const begun = performance.now()
    await boss.archive()
    const archived = performance.now()
    await new Promise(resolve => setTimeout(resolve, 1100))
    const waited = performance.now()
    await boss.drop()
    console.log(JSON.stringify({ archive_s: (archived - begun) / 1000, drop_s: (performance.now() - waited) / 1000 }))
  }
  await boss.stop({ graceful: false, wait: true })
}

main(process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
